// The loop a user would write by hand: index, greedy, draw, update and expected reward, fused; every arm, every round.
// Compiled by dev/benchmarks/native.py with -O3 -march=native; sums may be reordered, so that they vectorise.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

struct Bernstein { double operator()(double m, double d, double x) const { return std::min(1.0, m + d * std::sqrt(2 * x) + 3 * x); } };
struct Hoeffding { double operator()(double m, double, double x) const { return std::min(1.0, m + std::sqrt(0.5 * x)); } };
struct Kl {  // bracketed Newton from above, as a careful user would write it
  double operator()(double p, double, double x) const {
    if (p >= 1) return 1;
    if (p <= 0) return -std::expm1(-x);
    double low = p, high = 1, q = std::min(1.0 - 1e-12, p + std::sqrt(0.5 * x));
    for (int n = 0; n < 50; ++n) {
      double f = p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q)) - x;
      (f > 0 ? high : low) = q;
      double next = q - f * q * (1 - q) / (q - p);
      if (!(next > low && next < high)) next = 0.5 * (low + high);
      if (std::abs(next - q) <= 1e-12 * q) return next;
      q = next;
    }
    return q;
  }
};

struct Coverage {
  static double start(double w) { return w; }
  static double prepared(double q) { return q; }
  static double lift(double, double s, double z) { return s * z; }
  static double join(double s, double z) { return s * (1 - z); }
  static double worth(double w, double s) { return w - s; }
};
struct Logistic {
  static double start(double) { return 1; }
  static double prepared(double q) { return std::exp(-q); }
  static double lift(double w, double s, double z) { return w * s * (1 - z) / ((1 + s * z) * (1 + s)); }
  static double join(double s, double z) { return s * z; }
  static double worth(double w, double s) { return w / (1 + s); }
};
struct Linear {
  static double start(double) { return 0; }
  static double prepared(double q) { return q; }
  static double lift(double w, double, double z) { return w * z; }
  static double join(double s, double z) { return s + z; }
  static double worth(double w, double s) { return w * s; }
};

struct Random {  // splitmix64
  uint64_t state;
  uint64_t bits() {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~0ull; }
  uint64_t operator()() { return bits(); }
};

template <class R>
double gain(const double* w, const double* s, const double* z, int M) {
  double g = 0;
#pragma omp simd reduction(+ : g)
  for (int i = 0; i < M; ++i) g += R::lift(w[i], s[i], z[i]);
  return g;
}

template <class R>
void greedy(int L, int M, int K, const double* w, const double* z, const double* pulls, std::vector<double>& s,
            std::vector<char>& taken, std::vector<int>& chosen) {
  std::fill(taken.begin(), taken.end(), 0);
  for (int i = 0; i < M; ++i) s[i] = R::start(w[i]);
  for (int k = 0; k < K; ++k) {
    int best = -1;
    double most = -std::numeric_limits<double>::infinity();
    for (int j = 0; j < L; ++j) {
      if (taken[j]) continue;
      double g = gain<R>(w, s.data(), z + size_t(j) * M, M);
      if (g > most || (g == most && pulls[j] < pulls[best])) best = j, most = g;
    }
    chosen[k] = best;
    taken[best] = 1;
    for (int i = 0; i < M; ++i) s[i] = R::join(s[i], z[size_t(best) * M + i]);
  }
}

// A modular reward needs one evaluation an arm and a partial sort.
void sorted(int L, int M, int K, const double* w, const double* z, const double* pulls, std::vector<double>& gains,
            std::vector<int>& order, std::vector<int>& chosen) {
  for (int j = 0; j < L; ++j) gains[j] = gain<Linear>(w, w, z + size_t(j) * M, M), order[j] = j;
  std::partial_sort(order.begin(), order.begin() + K, order.end(), [&](int a, int b) {
    return gains[a] != gains[b] ? gains[a] > gains[b] : pulls[a] != pulls[b] ? pulls[a] < pulls[b] : a < b;
  });
  std::copy(order.begin(), order.begin() + K, chosen.begin());
}

struct Game { int L, M, K; const double *p, *w; double *pulls, *total; int64_t t; Random random; };

template <class R, class Rate>
double play(Game& g, int64_t rounds, Rate rate) {
  const int L = g.L, M = g.M, K = g.K;
  std::vector<double> z(size_t(L) * M), s(M), gains(L);
  std::vector<char> taken(L);
  std::vector<int> chosen(K), order(L);
  double earned = 0;
  for (int64_t n = 0; n < rounds; ++n) {
    ++g.t;
    for (int j = 0; j < L; ++j) rate(g, j, &z[size_t(j) * M]);
    if constexpr (std::is_same_v<R, Linear>) sorted(L, M, K, g.w, z.data(), g.pulls, gains, order, chosen);
    else greedy<R>(L, M, K, g.w, z.data(), g.pulls, s, taken, chosen);
    for (int j : chosen) {
      g.pulls[j] += 1;
      for (int i = 0; i < M; ++i) g.total[size_t(j) * M + i] += g.random.uniform() < g.p[size_t(j) * M + i] ? 1.0 : 0.0;
    }
    for (int i = 0; i < M; ++i) s[i] = R::start(g.w[i]);
    for (int j : chosen)
      for (int i = 0; i < M; ++i) s[i] = R::join(s[i], R::prepared(g.p[size_t(j) * M + i]));
    for (int i = 0; i < M; ++i) earned += R::worth(g.w[i], s[i]);
  }
  return earned;
}

template <class R, class I>
double indexed(Game& g, int64_t rounds, double rho) {
  return play<R>(g, rounds, [rho](Game& g, int j, double* z) {
    const double n = g.pulls[j], x = rho * std::log(double(g.t)) / n;
    const double* total = g.total + size_t(j) * g.M;
    for (int i = 0; i < g.M; ++i) {
      double m = total[i] / n;
      z[i] = R::prepared(I()(m, std::sqrt(std::max(0.0, m - m * m)), x));
    }
  });
}

template <class R>
double sampled(Game& g, int64_t rounds) {
  return play<R>(g, rounds, [](Game& g, int j, double* z) {
    for (int i = 0; i < g.M; ++i) {
      double hits = g.total[size_t(j) * g.M + i];
      std::gamma_distribution<double> a(1 + hits), b(1 + g.pulls[j] - hits);
      double x = a(g.random);
      z[i] = R::prepared(x / (x + b(g.random)));
    }
  });
}

// Normals by the ziggurat of Marsaglia and Tsang (2000), 256 layers: nearly always one word, one table, one product.
struct Ziggurat {
  double x[257], f[257];
  Ziggurat() {
    const double r = 3.6541528853610088, v = 0.00492867323399;
    x[0] = v / std::exp(-0.5 * r * r), x[1] = r, x[256] = 0;
    for (int i = 2; i < 256; ++i) x[i] = std::sqrt(-2 * std::log(v / x[i - 1] + std::exp(-0.5 * x[i - 1] * x[i - 1])));
    for (int i = 0; i < 257; ++i) f[i] = std::exp(-0.5 * x[i] * x[i]);
  }
  double operator()(Random& random) const {
    while (true) {
      const uint64_t bits = random.bits();
      const int i = bits & 255;
      const double u = 2 * (double(bits >> 11) * 0x1p-53) - 1, z = u * x[i];
      if (std::abs(z) < x[i + 1]) return z;
      if (i == 0) {
        double a, b;
        do a = -std::log(1 - random.uniform()) / x[1], b = -std::log(1 - random.uniform());
        while (2 * b < a * a);
        return u < 0 ? -x[1] - a : x[1] + a;
      }
      if (f[i] + random.uniform() * (f[i + 1] - f[i]) < std::exp(-0.5 * z * z)) return z;
    }
  }
};

double gamma(const Ziggurat& normal, Random& random, double shape) {  // Marsaglia and Tsang (2000), shape >= 1
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double z = normal(random), root = 1 + c * z;
    if (root <= 0) continue;
    const double v = root * root * root, u = random.uniform();
    if (u < 1 - 0.0331 * z * z * z * z) return d * v;
    if (std::log(u) < 0.5 * z * z + d * (1 - v + std::log(v))) return d * v;
  }
}

template <class R>
double sampled_fast(Game& g, int64_t rounds) {
  static const Ziggurat normal;
  return play<R>(g, rounds, [](Game& g, int j, double* z) {
    for (int i = 0; i < g.M; ++i) {
      double hits = g.total[size_t(j) * g.M + i];
      double a = gamma(normal, g.random, 1 + hits), b = gamma(normal, g.random, 1 + g.pulls[j] - hits);
      z[i] = R::prepared(a / (a + b));
    }
  });
}

template <class R>
double with_index(int index, Game& g, int64_t rounds, double rho) {
  if (index == 0) return indexed<R, Bernstein>(g, rounds, rho);
  if (index == 1) return indexed<R, Hoeffding>(g, rounds, rho);
  if (index == 2) return indexed<R, Kl>(g, rounds, rho);
  if (index == 3) return sampled<R>(g, rounds);
  return sampled_fast<R>(g, rounds);
}

}  // namespace

extern "C" double run(int index, int reward, int L, int M, int K, const double* p, const double* w, double* pulls,
                      double* total, int64_t t, int64_t rounds, double rho, uint64_t seed) {
  Game g{L, M, K, p, w, pulls, total, t, {seed}};
  if (reward == 0) return with_index<Coverage>(index, g, rounds, rho);
  if (reward == 1) return with_index<Logistic>(index, g, rounds, rho);
  return with_index<Linear>(index, g, rounds, rho);
}

extern "C" void pick(int L, int M, int K, const double* w, const double* q, const double* pulls, int* chosen) {
  std::vector<double> s(M);
  std::vector<char> taken(L);
  std::vector<int> out(K);
  greedy<Coverage>(L, M, K, w, q, pulls, s, taken, out);
  std::copy(out.begin(), out.end(), chosen);
}
