// The functions of UnaryKind (ggml-like/op.h), by number.

layout(constant_id = 0) const uint kKind = 0;

float activate(float x) {
  switch (kKind) {
    case 0:
      return divide(x, 1.0 + exp_of(-x));
    case 1: {
      precise const float inner = (0.7978845608 * x) * fma(x * x, 0.044715, 1.0);
      return 0.5 * x * (1.0 + tanh_of(inner));
    }
    case 2:
      return 0.5 * x * (1.0 + erf_of(x * 0.70710678));
    case 3:
      return x < 0.0 ? 0.0 : x;
    case 4:
      return x < 0.0 ? 0.0 : x * x;
    case 5:
      return sigmoid_of(x);
    case 6:
      return tanh_of(x);
    case 7:
      return divide(x, 1.0 + exp_of(-1.702 * x));
    default:
      return softplus_of(x);
  }
}
