/* The Functional Mock-up Interface 3.0 around a mechanism that linkwise wrote.
 *
 * Before this text come: MODEL_TOKEN, the sizes NX (states), NQ (of them configurations), NU (inputs), NP (parameters),
 * NY (outputs), the start START_X, START_U, START_P, the longest step STEP of co-simulation, QUATERNIONS with the places
 * of quaternions among the states, and
 *   rates(x, u, p, dx, y)                               state derivatives and outputs
 *   slopes(x, u, p, d_x, d_u, d_p, d_dx, d_y)           their derivatives along a direction
 *
 * Value references: 0 time, then states, their derivatives, inputs, parameters, outputs.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define FMI __declspec(dllexport)
#else
#define FMI __attribute__((visibility("default")))
#endif

enum { OK, WARNING, DISCARD, ERROR, FATAL };
typedef int Status;
typedef uint32_t Reference;
typedef void (*Log)(void *, Status, const char *, const char *);

#define FIRST_X 1
#define FIRST_DX (FIRST_X + NX)
#define FIRST_U (FIRST_DX + NX)
#define FIRST_P (FIRST_U + NU)
#define FIRST_Y (FIRST_P + NP)
#define LAST (FIRST_Y + NY)

typedef struct {
    double time, x[NX], u[NU + 1], p[NP + 1], dx[NX], y[NY + 1];
    bool known; /* whether dx and y are those of x, u, p */
    void *environment;
    Log log;
} Model;

static void start(Model *m)
{
    m->time = 0.0;
    m->known = false;
    memcpy(m->x, START_X, sizeof m->x);
    memcpy(m->u, START_U, sizeof m->u);
    memcpy(m->p, START_P, sizeof m->p);
}

static void know(Model *m)
{
    if (!m->known) rates(m->x, m->u, m->p, m->dx, m->y);
    m->known = true;
}

static Status refuse(Model *m, const char *why)
{
    if (m && m->log) m->log(m->environment, ERROR, "error", why);
    return ERROR;
}

static double *place(Model *m, Reference r)
{
    if (r >= LAST) return NULL;
    if (r >= FIRST_Y) return m->y + (r - FIRST_Y);
    if (r >= FIRST_P) return m->p + (r - FIRST_P);
    if (r >= FIRST_U) return m->u + (r - FIRST_U);
    if (r >= FIRST_DX) return m->dx + (r - FIRST_DX);
    if (r >= FIRST_X) return m->x + (r - FIRST_X);
    return &m->time;
}

static void *instantiate(const char *token, void *environment, Log log)
{
    Model *m;
    if (!token || strcmp(token, MODEL_TOKEN)) {
        if (log) log(environment, ERROR, "error", "the instantiation token is not that of this model");
        return NULL;
    }
    m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->environment = environment;
    m->log = log;
    start(m);
    return m;
}

FMI const char *fmi3GetVersion(void) { return "3.0"; }
FMI Status fmi3SetDebugLogging(void *m, bool on, size_t n, const char *const *categories)
{
    (void)m, (void)on, (void)n, (void)categories;
    return OK;
}

FMI void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                       bool logging, void *environment, Log log)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return instantiate(token, environment, log);
}

FMI void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                      bool logging, bool events, bool early, const Reference *between, size_t n,
                                      void *environment, Log log, void *update)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    (void)events, (void)early, (void)between, (void)n, (void)update;
    return instantiate(token, environment, log);
}

FMI void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, bool visible,
                                            bool logging, void *environment, Log log, void *clock, void *lock,
                                            void *unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)clock, (void)lock, (void)unlock;
    if (log) log(environment, ERROR, "error", "scheduled execution is not provided");
    return NULL;
}

FMI void fmi3FreeInstance(void *m) { free(m); }

FMI Status fmi3EnterInitializationMode(void *m, bool tolerant, double tolerance, double from, bool ends, double to)
{
    (void)tolerant, (void)tolerance, (void)ends, (void)to;
    ((Model *)m)->time = from;
    return OK;
}

FMI Status fmi3ExitInitializationMode(void *m) { (void)m; return OK; }
FMI Status fmi3EnterEventMode(void *m) { (void)m; return OK; }
FMI Status fmi3EnterContinuousTimeMode(void *m) { (void)m; return OK; }
FMI Status fmi3EnterConfigurationMode(void *m) { return refuse(m, "there is nothing to configure"); }
FMI Status fmi3ExitConfigurationMode(void *m) { return refuse(m, "there is nothing to configure"); }
FMI Status fmi3EnterStepMode(void *m) { (void)m; return OK; }
FMI Status fmi3Terminate(void *m) { (void)m; return OK; }
FMI Status fmi3Reset(void *m) { start(m); return OK; }
FMI Status fmi3EvaluateDiscreteStates(void *m) { (void)m; return OK; }

FMI Status fmi3UpdateDiscreteStates(void *m, bool *again, bool *terminate, bool *nominals, bool *values, bool *timed,
                                    double *next)
{
    (void)m;
    *again = *terminate = *nominals = *values = *timed = false;
    *next = 0.0;
    return OK;
}

/* Values. */
FMI Status fmi3GetFloat64(void *of, const Reference *r, size_t n, double *values, size_t count)
{
    Model *m = of;
    if (count < n) return refuse(m, "too few places for values");
    know(m);
    for (size_t i = 0; i < n; i++) {
        const double *from = place(m, r[i]);
        if (!from) return refuse(m, "there is no such variable");
        values[i] = *from;
    }
    return OK;
}

FMI Status fmi3SetFloat64(void *of, const Reference *r, size_t n, const double *values, size_t count)
{
    Model *m = of;
    if (count < n) return refuse(m, "too few values");
    for (size_t i = 0; i < n; i++) {
        double *to = place(m, r[i]);
        if (!to || r[i] == 0 || (r[i] >= FIRST_DX && r[i] < FIRST_U) || r[i] >= FIRST_Y)
            return refuse(m, "this variable cannot be set");
        *to = values[i];
    }
    m->known = false;
    return OK;
}

#define OTHER(NAME, TYPE)                                                                                      \
    FMI Status fmi3Get##NAME(void *m, const Reference *r, size_t n, TYPE *values, size_t count)                \
    {                                                                                                          \
        (void)r, (void)values, (void)count;                                                                    \
        return n ? refuse(m, "all variables are Float64") : OK;                                                \
    }                                                                                                          \
    FMI Status fmi3Set##NAME(void *m, const Reference *r, size_t n, const TYPE *values, size_t count)          \
    {                                                                                                          \
        (void)r, (void)values, (void)count;                                                                    \
        return n ? refuse(m, "all variables are Float64") : OK;                                                \
    }
OTHER(Float32, float)
OTHER(Int8, int8_t)
OTHER(UInt8, uint8_t)
OTHER(Int16, int16_t)
OTHER(UInt16, uint16_t)
OTHER(Int32, int32_t)
OTHER(UInt32, uint32_t)
OTHER(Int64, int64_t)
OTHER(UInt64, uint64_t)
OTHER(Boolean, bool)
OTHER(String, char *)

FMI Status fmi3GetBinary(void *m, const Reference *r, size_t n, size_t *sizes, const uint8_t **values, size_t count)
{
    (void)r, (void)sizes, (void)values, (void)count;
    return n ? refuse(m, "all variables are Float64") : OK;
}

FMI Status fmi3SetBinary(void *m, const Reference *r, size_t n, const size_t *sizes, const uint8_t *const *values,
                         size_t count)
{
    (void)r, (void)sizes, (void)values, (void)count;
    return n ? refuse(m, "all variables are Float64") : OK;
}

FMI Status fmi3GetClock(void *m, const Reference *r, size_t n, bool *values)
{
    (void)r, (void)values;
    return n ? refuse(m, "there are no clocks") : OK;
}

FMI Status fmi3SetClock(void *m, const Reference *r, size_t n, const bool *values)
{
    (void)r, (void)values;
    return n ? refuse(m, "there are no clocks") : OK;
}

#define NO_CLOCKS(NAME, ...)                                                                                   \
    FMI Status NAME(void *m, const Reference *r, size_t n, __VA_ARGS__)                                        \
    {                                                                                                          \
        (void)r, (void)n, (void)a;                                                                             \
        return refuse(m, "there are no clocks");                                                               \
    }
NO_CLOCKS(fmi3GetIntervalDecimal, double *a, int *b)
NO_CLOCKS(fmi3GetIntervalFraction, uint64_t *a, uint64_t *b, int *c)
NO_CLOCKS(fmi3GetShiftDecimal, double *a)
NO_CLOCKS(fmi3GetShiftFraction, uint64_t *a, uint64_t *b)
NO_CLOCKS(fmi3SetIntervalDecimal, const double *a)
NO_CLOCKS(fmi3SetIntervalFraction, const uint64_t *a, const uint64_t *b)
NO_CLOCKS(fmi3SetShiftDecimal, const double *a)
NO_CLOCKS(fmi3SetShiftFraction, const uint64_t *a, const uint64_t *b)

FMI Status fmi3ActivateModelPartition(void *m, Reference clock, double time)
{
    (void)clock, (void)time;
    return refuse(m, "there are no clocks");
}

/* The whole state, kept and put back. */
FMI Status fmi3GetFMUState(void *m, void **state)
{
    if (!*state) *state = malloc(sizeof(Model));
    if (!*state) return ERROR;
    memcpy(*state, m, sizeof(Model));
    return OK;
}

FMI Status fmi3SetFMUState(void *m, void *state) { memcpy(m, state, sizeof(Model)); return OK; }
FMI Status fmi3FreeFMUState(void *m, void **state)
{
    (void)m;
    if (state) free(*state), *state = NULL;
    return OK;
}

FMI Status fmi3SerializedFMUStateSize(void *m, void *state, size_t *size)
{
    (void)m, (void)state;
    *size = sizeof(Model);
    return OK;
}

FMI Status fmi3SerializeFMUState(void *m, void *state, uint8_t *bytes, size_t size)
{
    if (size < sizeof(Model)) return refuse(m, "too little memory for the state");
    memcpy(bytes, state, sizeof(Model));
    return OK;
}

FMI Status fmi3DeserializeFMUState(void *of, const uint8_t *bytes, size_t size, void **state)
{
    Model *m = of, *made;
    if (size < sizeof(Model)) return refuse(m, "these are not the bytes of a state");
    made = *state ? *state : malloc(sizeof(Model));
    if (!made) return ERROR;
    memcpy(made, bytes, sizeof(Model));
    made->environment = m->environment;
    made->log = m->log;
    *state = made;
    return OK;
}

/* Derivatives. */
FMI Status fmi3GetDirectionalDerivative(void *of, const Reference *unknowns, size_t n, const Reference *knowns, size_t k,
                                        const double *seed, size_t seeds, double *found, size_t count)
{
    Model *m = of, along, by;
    if (seeds < k || count < n) return refuse(m, "too few seeds or places");
    memset(&along, 0, sizeof along);
    memset(&by, 0, sizeof by);
    for (size_t i = 0; i < k; i++) {
        double *to = place(&along, knowns[i]);
        if (!to || knowns[i] == 0 || (knowns[i] >= FIRST_DX && knowns[i] < FIRST_U) || knowns[i] >= FIRST_Y)
            return refuse(m, "nothing is differentiated by this variable");
        *to += seed[i];
    }
    slopes(m->x, m->u, m->p, along.x, along.u, along.p, by.dx, by.y);
    memcpy(by.x, along.x, sizeof by.x);
    for (size_t i = 0; i < n; i++) {
        const double *from = place(&by, unknowns[i]);
        if (!from) return refuse(m, "there is no such variable");
        found[i] = *from;
    }
    return OK;
}

FMI Status fmi3GetAdjointDerivative(void *of, const Reference *unknowns, size_t n, const Reference *knowns, size_t k,
                                    const double *seed, size_t seeds, double *found, size_t count)
{
    if (seeds < n || count < k) return refuse(of, "too few seeds or places");
    for (size_t j = 0; j < k; j++) {
        const double one = 1.0;
        found[j] = 0.0;
        for (size_t i = 0; i < n; i++) {
            double slope;
            if (fmi3GetDirectionalDerivative(of, unknowns + i, 1, knowns + j, 1, &one, 1, &slope, 1)) return ERROR;
            found[j] += seed[i] * slope;
        }
    }
    return OK;
}

FMI Status fmi3GetNumberOfVariableDependencies(void *m, Reference r, size_t *n)
{
    (void)r, (void)n;
    return refuse(m, "dependencies are in the description of the model");
}

FMI Status fmi3GetVariableDependencies(void *m, Reference r, size_t *a, Reference *b, size_t *c, int *d, size_t n)
{
    (void)r, (void)a, (void)b, (void)c, (void)d, (void)n;
    return refuse(m, "dependencies are in the description of the model");
}

/* Model exchange. */
FMI Status fmi3CompletedIntegratorStep(void *m, bool never_back, bool *event, bool *terminate)
{
    (void)m, (void)never_back;
    *event = *terminate = false;
    return OK;
}

FMI Status fmi3SetTime(void *m, double time) { ((Model *)m)->time = time; return OK; }

FMI Status fmi3SetContinuousStates(void *of, const double *x, size_t n)
{
    Model *m = of;
    if (n != NX) return refuse(m, "this is not the number of states");
    memcpy(m->x, x, sizeof m->x);
    m->known = false;
    return OK;
}

FMI Status fmi3GetContinuousStates(void *of, double *x, size_t n)
{
    if (n != NX) return refuse(of, "this is not the number of states");
    memcpy(x, ((Model *)of)->x, NX * sizeof *x);
    return OK;
}

FMI Status fmi3GetContinuousStateDerivatives(void *of, double *dx, size_t n)
{
    if (n != NX) return refuse(of, "this is not the number of states");
    know(of);
    memcpy(dx, ((Model *)of)->dx, NX * sizeof *dx);
    return OK;
}

FMI Status fmi3GetNominalsOfContinuousStates(void *of, double *nominals, size_t n)
{
    if (n != NX) return refuse(of, "this is not the number of states");
    for (size_t i = 0; i < n; i++) nominals[i] = 1.0;
    return OK;
}

FMI Status fmi3GetEventIndicators(void *m, double *z, size_t n)
{
    (void)m, (void)z;
    return n ? ERROR : OK;
}

FMI Status fmi3GetNumberOfEventIndicators(void *m, size_t *n) { (void)m; *n = 0; return OK; }
FMI Status fmi3GetNumberOfContinuousStates(void *m, size_t *n) { (void)m; *n = NX; return OK; }

/* Co-simulation: classical Runge-Kutta steps, all of one length, none longer than STEP. */
static void advance(Model *m, double h)
{
    double k[4][NX], x[NX], y[NY + 1];
    for (int s = 0; s < 4; s++) {
        const double part = s == 0 ? 0.0 : s == 3 ? h : 0.5 * h;
        for (int i = 0; i < NX; i++) x[i] = m->x[i] + (s ? part * k[s - 1][i] : 0.0);
        rates(x, m->u, m->p, k[s], y);
    }
    for (int i = 0; i < NX; i++) m->x[i] += h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    for (const int *at = QUATERNIONS; *at >= 0; at++) {
        double *w = m->x + *at, norm = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3]);
        for (int i = 0; i < 4; i++) w[i] /= norm;
    }
}

FMI Status fmi3DoStep(void *of, double now, double size, bool never_back, bool *event, bool *terminate, bool *early,
                      double *last)
{
    Model *m = of;
    const double count = size > 0.0 ? ceil(size / STEP - 1e-9) : 0.0;
    (void)never_back;
    for (double i = 0.0; i < count; i += 1.0) advance(m, size / count);
    m->known = false;
    m->time = now + size;
    *event = *terminate = *early = false;
    *last = m->time;
    for (int i = 0; i < NX; i++)
        if (!isfinite(m->x[i])) return refuse(m, "the motion is not a number any more");
    return OK;
}

FMI Status fmi3GetOutputDerivatives(void *m, const Reference *r, size_t n, const int32_t *orders, double *values,
                                    size_t count)
{
    (void)r, (void)n, (void)orders, (void)values, (void)count;
    return refuse(m, "derivatives of outputs in time are not provided");
}
