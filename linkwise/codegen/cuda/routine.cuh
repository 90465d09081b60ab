// What the statements of a routine do to the state of one thread. Its buffers are arrays of the thread's own.

// Functions take pointers to whole buffers, so that numbers side by side are read and written four at a time.
#define LW_ALIGNED(buffer) ((decltype(buffer))__builtin_assume_aligned(buffer, 16))

template <int N> LW_INLINE void lw_copy(const REAL *from, REAL *to)
{
#pragma unroll
    for (int e = 0; e < N; ++e) to[e] = from[e];
}

// The unit vector along axis j.
template <int N> LW_INLINE void lw_unit(REAL *to, int j)
{
#pragma unroll
    for (int e = 0; e < N; ++e) to[e] = e == j ? (REAL)1 : (REAL)0;
}

// The row of a curve that is in force now. Rows begin with the times at which they begin and end, the first at -infinity.
template <int N> LW_INLINE void lw_seek(const REAL *curve, long long rows, REAL now, REAL *to)
{
    if (to[0] <= now && now < to[1]) return;
    long long a = 0, b = rows;
    while (b - a > 1) {
        const long long middle = (a + b) / 2;
        if (curve[middle * N] <= now)
            a = middle;
        else
            b = middle;
    }
    lw_copy<N>(curve + a * N, to);
}

// A row that lies at an index, a whole number, `stride` apart from the next.
template <int N> LW_INLINE void lw_read(const REAL *series, long long stride, REAL index, REAL *to)
{
    lw_copy<N>(series + (long long)index * stride, to);
}

template <int N> LW_INLINE void lw_record(REAL *record, long long stride, REAL index, const REAL *from)
{
    lw_copy<N>(from, record + (long long)index * stride);
}
