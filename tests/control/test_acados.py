"""Dynamics for acados, called as acados calls them: with vectors and matrices of BLASFEO that begin anywhere.

Where the folder of an installed BLASFEO is in the variable BLASFEO, it is used; else a plain stand-in of the few
functions that are called, with matrices stored otherwise than by columns, so that nothing can go round them.
"""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm

ARGUMENTS = """
#include "blasfeo_d_aux.h"
struct blasfeo_dvec_args { struct blasfeo_dvec *x; int xi; };
struct blasfeo_dmat_args { struct blasfeo_dmat *A; int ai; int aj; };
"""

STAND_IN = """
#ifndef STAND_IN
#define STAND_IN
#include <stdlib.h>
struct blasfeo_dvec { int m; double *v; };
struct blasfeo_dmat { int m, n; double *rows; };
static inline void blasfeo_allocate_dvec(int m, struct blasfeo_dvec *s) { s->m = m; s->v = calloc(m, 8); }
static inline void blasfeo_allocate_dmat(int m, int n, struct blasfeo_dmat *s)
{ s->m = m; s->n = n; s->rows = calloc(m * n, 8); }
static inline void blasfeo_pack_dvec(int m, double *x, int inc, struct blasfeo_dvec *s, int at)
{ for (int i = 0; i < m; i++) s->v[at + i] = x[inc * i]; }
static inline void blasfeo_unpack_dvec(int m, struct blasfeo_dvec *s, int at, double *x, int inc)
{ for (int i = 0; i < m; i++) x[inc * i] = s->v[at + i]; }
static inline void blasfeo_pack_dmat(int m, int n, double *A, int lda, struct blasfeo_dmat *s, int r, int c)
{ for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) s->rows[(r + i) * s->n + c + j] = A[j * lda + i]; }
static inline void blasfeo_unpack_dmat(int m, int n, struct blasfeo_dmat *s, int r, int c, double *A, int lda)
{ for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) A[j * lda + i] = s->rows[(r + i) * s->n + c + j]; }
#endif
"""

CALLER = """
#include "{source}"
#include "blasfeo_d_aux_ext_dep.h"
int call(int kind, double *ux, double *pi, double *p, double *next, double *jac, double *hess)
{{
    struct blasfeo_dvec s_ux, s_pi, s_next;
    struct blasfeo_dmat s_jac, s_hess;
    blasfeo_allocate_dvec({n}, &s_ux), blasfeo_allocate_dvec({nx}, &s_pi), blasfeo_allocate_dvec({nx}, &s_next);
    blasfeo_allocate_dmat({n} + 1, {nx}, &s_jac), blasfeo_allocate_dmat({n}, {n}, &s_hess);
    blasfeo_pack_dvec({n}, ux, 1, &s_ux, 0), blasfeo_pack_dvec({nx}, pi, 1, &s_pi, 0);
    struct blasfeo_dvec_args x_in = {{&s_ux, {nu}}}, u_in = {{&s_ux, 0}}, pi_in = {{&s_pi, 0}};
    struct blasfeo_dvec_args next_out = {{&s_next, 0}};
    struct blasfeo_dmat_args jac_out = {{&s_jac, 0, 0}}, hess_out = {{&s_hess, 0, 0}};
    void *in[3] = {{&x_in, &u_in, &pi_in}}, *out[3] = {{&next_out, &jac_out, &hess_out}};
    int (*functions[3])(void **, void **, void *) = {{{functions}}};
    int status = functions[kind](in, out, p);
    blasfeo_unpack_dvec({nx}, &s_next, 0, next, 1);
    blasfeo_unpack_dmat({n}, {nx}, &s_jac, 0, 0, jac, {n}), blasfeo_unpack_dmat({n}, {n}, &s_hess, 0, 0, hess, {n});
    return status;
}}
"""


def step(model, x, u, share):
    """An Euler step of an arm with a motor at its shoulder, of which a share arrives."""
    q, v = x[:2], x[2:]
    v = v + 0.01 * model.forward_dynamics(q, v, np.array([share[0] * u[0], 0.0], dtype=object))
    return np.concatenate([q + 0.01 * v, v])


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    folder, arm = tmp_path_factory.mktemp("acados"), planar_arm(2)
    f = lw.compile(step, arm, {"x": 4, "u": 1, "share": 1}, name="arm_step")
    made = lw.control.emit_acados(f, folder, order=2)
    (folder / "acados" / "utils").mkdir(parents=True)
    (folder / "acados" / "utils" / "external_function_generic.h").write_text(ARGUMENTS)
    real = os.environ.get("BLASFEO")
    if real:
        words = [f"-I{real}/include", f"-L{real}/lib", f"-Wl,-rpath,{real}/lib", "-lblasfeo"]
    else:
        words = []
        for name in ("blasfeo_d_aux.h", "blasfeo_d_aux_ext_dep.h"):
            (folder / name).write_text(STAND_IN)
    functions = ", ".join((made.dyn_disc_fun, made.dyn_disc_fun_jac, made.dyn_disc_fun_jac_hess))
    caller = CALLER.format(source=made.dyn_generic_source.name, n=5, nx=4, nu=1, functions=functions)
    (folder / "caller.c").write_text(caller)
    library = folder / "caller.so"
    command = ["cc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", f"-I{folder}", "-o", library, folder / "caller.c"]
    subprocess.run([*command, *words, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))

    def call(kind, x, u, pi, p):
        arrays = [np.concatenate([u, x]), np.array(pi), np.array(p), np.zeros(4), np.zeros((4, 5)), np.zeros((5, 5))]
        assert loaded.call(kind, *(ctypes.c_void_p(array.ctypes.data) for array in arrays)) == 0
        return arrays[3], arrays[4], arrays[5]

    return f, call


def test_next_state_jacobian_and_second_derivatives(called):
    f, call = called
    x, u, pi, p = np.array([0.3, -0.5, 0.7, 1.1]), np.array([0.4]), np.array([1.0, -2.0, 0.5, 3.0]), np.array([0.8])
    B, A = f.jacobian("u")(x, u, p), f.jacobian("x")(x, u, p)
    for kind in range(3):
        found, jacobian, hessian = call(kind, x, u, pi, p)
        np.testing.assert_allclose(found, f(x, u, p), rtol=1e-14)
        if kind:  # memory by columns of the transposed matrix: rows here
            np.testing.assert_allclose(jacobian, np.hstack([B, A]), atol=1e-14)
    h = 1e-6
    weighted = [
        (pi @ (call(1, x + h * e[1:], u + h * e[:1], pi, p)[1] - call(1, x - h * e[1:], u - h * e[:1], pi, p)[1]))
        / (2.0 * h)
        for e in np.eye(5)
    ]
    np.testing.assert_allclose(hessian, weighted, atol=1e-8)
    assert np.abs(hessian).max() > 1e-3


def test_other_functions_are_refused(tmp_path):
    f = lw.compile(lambda model, x, u: x[:1], planar_arm(1), {"x": 2, "u": 1}, name="short")
    with pytest.raises(lw.InputError, match="gives the next x"):
        lw.control.emit_acados(f, tmp_path)
