// Device functions of generated kernels. REAL is float or double.
//
// LW_LANES states form a tile, one for each thread of a warp (or some of them). A tile's rows are brought to shared memory side by side, by
// wide accesses, and from there each thread takes its own; results go back the same way.

// NVRTC has no <math.h>.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && LW_WIDE_ROWS
#define LW_ASYNC 1 // rows go to shared memory without passing through registers
#else
#define LW_ASYNC 0
#endif

#define LW_INLINE __device__ __forceinline__
#define LW_MASK (0xffffffffu >> (32 - LW_LANES)) // the threads of a warp that have a state

// ------------------------------------------------------------------------------------------------------------ arithmetic

LW_INLINE float lw_fma(float a, float b, float c) { return fmaf(a, b, c); }
LW_INLINE double lw_fma(double a, double b, double c) { return fma(a, b, c); }
LW_INLINE float lw_abs(float a) { return fabsf(a); }
LW_INLINE double lw_abs(double a) { return fabs(a); }
LW_INLINE float lw_exp(float a) { return expf(a); }
LW_INLINE double lw_exp(double a) { return exp(a); }
LW_INLINE float lw_log(float a) { return logf(a); }
LW_INLINE double lw_log(double a) { return log(a); }
LW_INLINE float lw_atan2(float a, float b) { return atan2f(a, b); }
LW_INLINE double lw_atan2(double a, double b) { return atan2(a, b); }

// A number that nobody writes while the kernel runs: its load need not wait for stores in front of it.
LW_INLINE REAL lw_read(const REAL *from)
{
#ifdef __CUDA_ARCH__
    return __ldg(from);
#else
    return *from;
#endif
}

LW_INLINE float lw_nan(float) { return nanf(""); }
LW_INLINE double lw_nan(double) { return nan(""); }

// Division without a branch; the compiler's own calls a subroutine for rare operands and so cuts the code in two at every
// quotient. Within two units in the last place for any operands in single precision; in double precision correct to
// the last place, where divisors below 2^-1022 count as zero and those above 2^1022 as infinite.
LW_INLINE float lw_divide(float a, float b)
{
#ifdef __CUDA_ARCH__
    float q;
    asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
#else
    return a / b;
#endif
}

LW_INLINE double lw_divide(double a, double b)
{
#ifdef __CUDA_ARCH__
    double r0;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r0) : "d"(b));
    double e = fma(-b, r0, 1.0); // r0 has 20 good bits
    e = fma(e, e, e);
    double r = fma(r0, e, r0); // 60
    e = fma(-b, r, 1.0);
    r = fma(r, e, r);
    double q = a * r;
    e = fma(-b, q, a);
    q = fma(e, r, q);
    return fabs(q) <= 1.7976931348623157e308 ? q : a * r0; // zero, infinity, overflow: the first guess has it right
#else
    return a / b;
#endif
}

// Roots without a branch, for the same reason; within two units in the last place, below 2^-1022 the operand itself.
LW_INLINE float lw_sqrt(float a)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(a));
    return root;
#else
    return sqrtf(a);
#endif
}

LW_INLINE double lw_sqrt(double a)
{
#ifdef __CUDA_ARCH__
    double r;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(a));
    double root = a * r, half = 0.5 * r; // 22 good bits
    double e = fma(-half, root, 0.5);
    root = fma(root, e, root);
    half = fma(half, e, half); // 44
    e = fma(-root, root, a);
    root = fma(e, half, root);
    const bool extreme = fabs(a) < 2.2250738585072014e-308 || a == INFINITY;
    return extreme ? a : root;
#else
    return sqrt(a);
#endif
}

// ----------------------------------------------------------------------------------------------------------- sin and cos

// x - k pi/2 in three parts, exact up to rounding: fused operations lose nothing of k times a part. Two units in the last
// place for |x| up to lw_angle_limit; beyond lw_angle_end, where neighbouring numbers are half a radian apart, NaN.
LW_INLINE float lw_angle_limit(float) { return 1e5f; }
LW_INLINE double lw_angle_limit(double) { return 1e9; }
LW_INLINE float lw_angle_end(float) { return 6e6f; }
LW_INLINE double lw_angle_end(double) { return 1e15; }

LW_INLINE void lw_sincos(float x, float &s, float &c)
{
    const float shifted = fmaf(x, 0x1.45f306p-1f, 0x1.8p23f); // 2/pi; the low bits are the nearest whole number
    const int quadrant = __float_as_int(shifted);
    const float k = shifted - 0x1.8p23f;
    float r = fmaf(-k, 0x1.921fb6p+0f, x);
    r = fmaf(-k, -0x1.777a5cp-25f, r);
    r = fmaf(-k, -0x1.ee59dap-50f, r);
    const float z = r * r;
    float p = fmaf(z, 2.7246246645518113e-06f, -0.00019840057939291f);
    p = fmaf(p, z, 0.008333331905305386f);
    p = fmaf(p, z, -0.1666666716337204f);
    const float sine = fmaf(r * z, p, r);
    p = fmaf(z, 2.4544904590584338e-05f, -0.0013888288522139192f);
    p = fmaf(p, z, 0.0416666641831398f);
    const float cosine = fmaf(z, fmaf(z, p, -0.5f), 1.0f);
    const bool odd = quadrant & 1;
    s = __int_as_float(__float_as_int(odd ? cosine : sine) ^ ((quadrant << 30) & 0x80000000));
    c = __int_as_float(__float_as_int(odd ? sine : cosine) ^ (((quadrant + 1) << 30) & 0x80000000));
}

LW_INLINE double lw_with_sign_turned(double x, int bit31)
{
    return __hiloint2double(__double2hiint(x) ^ (bit31 & 0x80000000), __double2loint(x));
}

LW_INLINE void lw_sincos(double x, double &s, double &c)
{
    const double shifted = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
    const int quadrant = __double2loint(shifted);
    const double k = shifted - 0x1.8p52;
    double r = fma(-k, 0x1.921fb54442d18p+0, x);
    r = fma(-k, 0x1.1a62633145c07p-54, r);
    r = fma(-k, -0x1.f1976b7ed8fbcp-110, r);
    const double z = r * r;
    double p = fma(z, 1.591644053715536e-10, -2.5051108263967758e-08);
    p = fma(p, z, 2.755731598872591e-06);
    p = fma(p, z, -0.00019841269836537808);
    p = fma(p, z, 0.008333333333330802);
    p = fma(p, z, -0.16666666666666666);
    const double sine = fma(r * z, p, r);
    p = fma(z, -1.1381575947444187e-11, 2.0876131516333237e-09);
    p = fma(p, z, -2.7557317200521634e-07);
    p = fma(p, z, 2.4801587298627582e-05);
    p = fma(p, z, -0.0013888888888887304);
    p = fma(p, z, 0.041666666666666664);
    const double cosine = fma(z, fma(z, p, -0.5), 1.0);
    const bool odd = quadrant & 1;
    s = lw_with_sign_turned(odd ? cosine : sine, quadrant << 30);
    c = lw_with_sign_turned(odd ? sine : cosine, (quadrant + 1) << 30);
}

// An angle that was computed, or that something else reads too: it cannot be brought into range beforehand.
template <typename T> LW_INLINE void lw_sincos_any(T x, T &s, T &c)
{
    lw_sincos(lw_abs(x) <= lw_angle_end(x) ? x : lw_nan(x), s, c);
}

// A huge angle within a turn. Rare, slow and exact; never inlined, so that its registers and stack cost nothing elsewhere.
__device__ __noinline__ float lw_within_a_turn(float x)
{
    return fabsf(x) <= lw_angle_limit(x) ? x : atan2f(sinf(x), cosf(x));
}

__device__ __noinline__ double lw_within_a_turn(double x)
{
    return fabs(x) <= lw_angle_limit(x) ? x : atan2(sin(x), cos(x));
}

// ------------------------------------------------------------------------------------------------------------------ rows

struct __align__(16) lw_pack
{
    REAL x[16 / sizeof(REAL)];
};

constexpr int LW_WIDTH = 16 / sizeof(REAL);

template <typename... Pointers> LW_INLINE bool lw_aligned(Pointers... pointers)
{
    return (((unsigned long long)pointers | ...) & 15) == 0;
}

// How large a number is, in the cheapest form that can be compared: itself, or the upper half of its bits.
LW_INLINE float lw_magnitude(float x) { return fabsf(x); }
LW_INLINE int lw_magnitude(double x) { return __double2hiint(x) & 0x7fffffff; }
LW_INLINE float lw_larger(float a, float b) { return fmaxf(a, b); }
LW_INLINE int lw_larger(int a, int b) { return a > b ? a : b; }
typedef decltype(lw_magnitude((REAL)0)) lw_size;

LW_INLINE int lw_lane() { return threadIdx.x % LW_LANES; }

// Rows of N numbers, PITCH apart in the tile. WATCH: the size of the largest comes back, to look for huge angles.
template <int N, int PITCH, bool WATCH> struct lw_rows
{
    static constexpr int PACKS = LW_LANES * N / LW_WIDTH; // in whole tiles
    static constexpr int ROUNDS = (PACKS + LW_LANES - 1) / LW_LANES;
    static constexpr bool DENSE = PITCH == N;
    lw_pack held[ROUNDS];

    // First half: start to read. All arrays do this before any does the second half.
    LW_INLINE void fetch(REAL *tile, const REAL *rows)
    {
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int at = k * LW_LANES + lw_lane();
            if (at < PACKS) {
                if (LW_ASYNC && DENSE)
                    copy(tile + at * LW_WIDTH, rows + at * LW_WIDTH);
                else
                    held[k] = reinterpret_cast<const lw_pack *>(rows)[at];
            }
        }
    }

    // Second half: the numbers are in the tile, as far as this lane brought them.
    LW_INLINE lw_size put(REAL *tile)
    {
        lw_size largest = 0;
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int at = k * LW_LANES + lw_lane();
            if (at < PACKS) {
                if (LW_ASYNC && DENSE) {
                    if (WATCH) held[k] = reinterpret_cast<const lw_pack *>(tile)[at];
                } else if (DENSE)
                    reinterpret_cast<lw_pack *>(tile)[at] = held[k];
                else
                    for (int i = 0; i < LW_WIDTH; ++i) tile[place(at * LW_WIDTH + i)] = held[k].x[i];
                if (WATCH)
                    for (int i = 0; i < LW_WIDTH; ++i) largest = lw_larger(largest, lw_magnitude(held[k].x[i]));
            }
        }
        return largest;
    }

    // Both halves for the last tile, or rows that are not aligned.
    static LW_INLINE lw_size some(REAL *tile, const REAL *rows, int count)
    {
        lw_size largest = 0;
#pragma unroll 1
        for (int k = lw_lane(); k < count * N; k += LW_LANES) {
            const REAL x = rows[k];
            tile[place(k)] = x;
            if (WATCH) largest = lw_larger(largest, lw_magnitude(x));
        }
        return largest;
    }

    static LW_INLINE void back(REAL *rows, const REAL *tile)
    {
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int at = k * LW_LANES + lw_lane();
            if (at < PACKS) {
                lw_pack pack;
                if (DENSE)
                    pack = reinterpret_cast<const lw_pack *>(tile)[at];
                else
                    for (int i = 0; i < LW_WIDTH; ++i) pack.x[i] = tile[place(at * LW_WIDTH + i)];
                reinterpret_cast<lw_pack *>(rows)[at] = pack;
            }
        }
    }

    static LW_INLINE void some_back(REAL *rows, const REAL *tile, int count)
    {
#pragma unroll 1
        for (int k = lw_lane(); k < count * N; k += LW_LANES) rows[k] = tile[place(k)];
    }

    static LW_INLINE int place(int k) { return DENSE ? k : k + k / N * (PITCH - N); }

    static LW_INLINE void copy(REAL *to, const REAL *from)
    {
#if LW_ASYNC
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                     : "memory");
#endif
    }
};

// What this lane started to read has arrived.
LW_INLINE void lw_arrive()
{
#if LW_ASYNC
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Numbers that lie apart: element e of state i is at array[e * count + i].
template <int N, int PITCH> LW_INLINE lw_size lw_columns_in(REAL *tile, const REAL *column, long long count)
{
    lw_size largest = 0;
#pragma unroll
    for (int e = 0; e < N; ++e) {
        const REAL x = column[e * count];
        tile[lw_lane() * PITCH + e] = x;
        largest = lw_larger(largest, lw_magnitude(x));
    }
    return largest;
}

template <int N, int PITCH> LW_INLINE void lw_columns_back(REAL *column, const REAL *tile, long long count)
{
#pragma unroll
    for (int e = 0; e < N; ++e) column[e * count] = tile[lw_lane() * PITCH + e];
}
