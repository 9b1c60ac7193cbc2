// The body of raycast.nearest: follows a ray through a tree, the nearer child first, the farther one on the stack with
// its distance. Plain loops and a small stack: few registers, and so many rays under way at once, are what counts here.
// It compiles as CUDA for a GPU and as C++ for a CPU. LEFT_OUT(i) tells whether triangle i is not drawn.
#ifdef __CUDA_ARCH__
    typedef float4 Row;
#define ROW(numbers, index) __ldg(reinterpret_cast<const float4*>(numbers) + (index))
#define LESS fminf
#define MORE fmaxf
#define BITS __float_as_int
#else
    struct Row {
        float x, y, z, w;
    };
#define ROW(numbers, index) (reinterpret_cast<const Row*>(numbers)[index])
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define BITS(number) (*reinterpret_cast<const int*>(&(number)))
#endif
    const float x = origin[0], y = origin[1], z = origin[2];
    const float dx = ray[0], dy = ray[1], dz = ray[2];
    const float ix = 1.0f / (wp::abs(dx) > 1e-9f ? dx : 1e-9f);
    const float iy = 1.0f / (wp::abs(dy) > 1e-9f ? dy : 1e-9f);
    const float iz = 1.0f / (wp::abs(dz) > 1e-9f ? dz : 1e-9f);
    float best = far, best_u = 0.0f, best_v = 0.0f;
    int face = -1;
    int stack[32];
    float entry[32];
    int depth = 0;
    int at = root;
    while (true) {
        if (at >= 0) {
            const Row l0 = ROW(nodes.data, 4 * at), l1 = ROW(nodes.data, 4 * at + 1);
            const Row r0 = ROW(nodes.data, 4 * at + 2), r1 = ROW(nodes.data, 4 * at + 3);
            float a = (l0.x - x) * ix, b = (l1.x - x) * ix;
            float near_l = LESS(a, b), far_l = MORE(a, b);
            a = (l0.y - y) * iy, b = (l1.y - y) * iy;
            near_l = MORE(near_l, LESS(a, b)), far_l = LESS(far_l, MORE(a, b));
            a = (l0.z - z) * iz, b = (l1.z - z) * iz;
            near_l = MORE(near_l, LESS(a, b)), far_l = LESS(far_l, MORE(a, b));
            a = (r0.x - x) * ix, b = (r1.x - x) * ix;
            float near_r = LESS(a, b), far_r = MORE(a, b);
            a = (r0.y - y) * iy, b = (r1.y - y) * iy;
            near_r = MORE(near_r, LESS(a, b)), far_r = LESS(far_r, MORE(a, b));
            a = (r0.z - z) * iz, b = (r1.z - z) * iz;
            near_r = MORE(near_r, LESS(a, b)), far_r = LESS(far_r, MORE(a, b));
            const bool left = near_l <= far_l && far_l >= 0.0f && near_l < best;
            const bool right = near_r <= far_r && far_r >= 0.0f && near_r < best;
            const int left_child = BITS(l0.w), right_child = BITS(l1.w);
            if (left && right) {
                const bool left_first = near_l <= near_r;
                stack[depth] = left_first ? right_child : left_child;
                entry[depth] = left_first ? near_r : near_l;
                depth++;
                at = left_first ? left_child : right_child;
                continue;
            }
            if (left || right) {
                at = left ? left_child : right_child;
                continue;
            }
        } else {
            const int first = ~at >> 3, last = first + (~at & 7);
            for (int i = first; i < last; ++i) {
                const Row p = ROW(triangles.data, 3 * i), e = ROW(triangles.data, 3 * i + 1), f = ROW(triangles.data, 3 * i + 2);
                const float hx = dy * f.z - dz * f.y, hy = dz * f.x - dx * f.z, hz = dx * f.y - dy * f.x;
                const float det = e.x * hx + e.y * hy + e.z * hz;
                const float inverse = 1.0f / det;
                const float sx = x - p.x, sy = y - p.y, sz = z - p.z;
                const float v = (sx * hx + sy * hy + sz * hz) * inverse;
                const float qx = sy * e.z - sz * e.y, qy = sz * e.x - sx * e.z, qz = sx * e.y - sy * e.x;
                const float w = (dx * qx + dy * qy + dz * qz) * inverse;
                const float d = (f.x * qx + f.y * qy + f.z * qz) * inverse;
                // A hair of overlap, so that no ray slips between two triangles. Seen from behind, det is negative.
                if (v >= -1e-5f && w >= -1e-5f && v + w <= 1.00001f && d > 0.0f && d < best && (det > 0.0f || !cull_backfaces) && !LEFT_OUT(i)) {
                    best = d, best_u = 1.0f - v - w, best_v = v, face = i;
                }
            }
        }
        do {
            if (depth == 0) return wp::vec4(best, best_u, best_v, (float)face);
            at = stack[--depth];
        } while (entry[depth] >= best);
    }
