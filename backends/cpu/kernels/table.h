// The table of one level. Included inside an anonymous namespace after everything else; INFER_LEVEL is its name.

constexpr TypeKernel kProducts[] = {
    {DataType::kF32, product_float<LoadF32>},
    {DataType::kF16, product_float<LoadF16>},
    {DataType::kBF16, product_float<LoadBF16>},
    {DataType::kQ4_0, product_32<Q40>},
    {DataType::kQ4_1, product_32<Q41>},
    {DataType::kQ5_0, product_32<Q50>},
    {DataType::kQ5_1, product_32<Q51>},
    {DataType::kQ8_0, product_q80<Q80>(), other_product_q80<Q80>()},
    {DataType::kQ2_K, product_super<Q2K>},
    {DataType::kQ3_K, product_super<Q3K>},
    {DataType::kQ4_K, product_few<OneQ4K, LanesQ4K, kStreamsFrom, kStreamsTo>},
    {DataType::kQ5_K, product_streamed<OneQ5K, kStreamsFrom, kStreamsTo>},
    {DataType::kQ6_K, product_few<OneQ6K, LanesQ6K, 1, kStreamsQ6To>},
    {DataType::kIQ4_NL, product_32<IQ4NL>},
    {DataType::kIQ4_XS, product_super<IQ4XS>},
    {DataType::kMXFP4, product_32<MXFP4>},
};
