// What the statements of a program do to the numbers of one state, which are `apart` from each other in memory: side by
// side in a thread's own arrays, LW_LANES apart in the memory of a tile. All is inlined, so that sizes and distances that
// are written in the call are known, and arrays whose indexes are all known stay in registers.

// Functions take pointers to whole buffers, so that numbers side by side are read and written four at a time.
#define LW_ALIGNED(buffer) ((decltype(buffer))__builtin_assume_aligned(buffer, 16))

LW_INLINE void lw_copy(const REAL *from, long long from_apart, REAL *to, long long to_apart, int size)
{
#pragma unroll
    for (int e = 0; e < size; ++e) to[e * to_apart] = from[e * from_apart];
}

// A number counted up, as it was before.
LW_INLINE long long lw_counted(long long *number) { return (long long)atomicAdd((unsigned long long *)number, 1ull); }

// The unit vector along axis j.
LW_INLINE void lw_unit(REAL *to, long long apart, int size, int j)
{
#pragma unroll
    for (int e = 0; e < size; ++e) to[e * apart] = e == j ? (REAL)1 : (REAL)0;
}

// The sine and the cosine of any angle.
LW_INLINE void lw_turned(REAL angle, REAL &sine, REAL &cosine) { lw_sincos(lw_within_a_turn(angle), sine, cosine); }

LW_INLINE void lw_all_angles(const REAL *angles, REAL *sines, REAL *cosines, long long apart, int size)
{
#pragma unroll 2
    for (int e = 0; e < size; ++e) {
        REAL sine, cosine;
        lw_turned(angles[e * apart], sine, cosine);
        sines[e * apart] = sine;
        cosines[e * apart] = cosine;
    }
}

// The row of a curve that is in force now. Rows begin with the times at which they begin and end, the first at -infinity.
LW_INLINE void lw_seek(const REAL *curve, long long rows, int width, REAL now, REAL *to, long long apart)
{
    if (to[0] <= now && now < to[apart]) return;
    long long a = 0, b = rows;
    while (b - a > 1) {
        const long long middle = (a + b) / 2;
        if (curve[middle * width] <= now)
            a = middle;
        else
            b = middle;
    }
    lw_copy(curve + a * width, 1, to, apart, width);
}
