// Sums over the lanes of a workgroup; all lanes get the result. The order of the additions is fixed for a device. Needs
// `layout(local_size_x_id = 0)` and kLanes as specialization constant 0. With -DSUBGROUPS most of the work is done by
// subgroup operations, for any size of subgroups.

shared float reduce_lanes[kLanes];

#ifdef SUBGROUPS
float reduce_add(float x) {
  const float sum = subgroupAdd(x);
  if (gl_NumSubgroups == 1u) return sum;
  barrier();
  if (subgroupElect()) reduce_lanes[gl_SubgroupID] = sum;
  barrier();
  float all = reduce_lanes[0];
  for (uint i = 1u; i < gl_NumSubgroups; ++i) all += reduce_lanes[i];
  return all;
}
#else
float reduce_add(float x) {
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  reduce_lanes[lane] = x;
  barrier();
  for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
    if (lane < stride) reduce_lanes[lane] += reduce_lanes[lane + stride];
    barrier();
  }
  return reduce_lanes[0];
}
#endif
