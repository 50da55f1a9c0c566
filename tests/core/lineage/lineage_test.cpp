// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"

#include "core/base/files.h"
#include "tests/core/checkpoint/support.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace ponderscope {
namespace {

using namespace testing;

namespace fs = std::filesystem;
using nlohmann::json;

Lineage compare(const fs::path& a, const fs::path& b, const LineageOptions& options = {}) {
    return compare_lineage(Checkpoint::open(a), Checkpoint::open(b), options);
}

std::vector<std::vector<std::int64_t>> pairs_of(const AttentionMatch& awm) {
    std::vector<std::vector<std::int64_t>> pairs;
    for (const AttentionMatch::Layer& layer : awm.layers) {
        pairs.push_back({layer.pair.a, layer.pair.b});
    }
    return pairs;
}

double largest_difference(const InvariantTerms& got, const json& want) {
    double largest = std::abs(got.ics - want.at("ics").get<double>());
    const std::map<const char*, InvariantTerms::Term> terms{{"WqWk", InvariantTerms::query_key},
                                                            {"WvWo", InvariantTerms::value_output},
                                                            {"WuWd", InvariantTerms::up_down}};
    for (const auto& [name, term] : terms) {
        const auto values = want.at(name).get<std::vector<double>>();
        EXPECT_EQ(got.correlation[term].size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::abs(got.correlation[term][i] - values[i]));
        }
    }
    return largest;
}

/// What the authors' code gives on five pairs: shared/data/lineage.
class AuthorsPairs : public ::testing::TestWithParam<const char*> {};

TEST_P(AuthorsPairs, GiveTheAuthorsNumbers) {
    const std::string name = std::string("lineage/") + GetParam();
    PONDERSCOPE_REQUIRE_TEST_DATA(name);
    const fs::path folder = test_data() / name;
    const json expected = json::parse(read_file(folder / "expected.json"));
    const json& want = expected.at("awm");
    for (const auto& [limit, terms] : expected.at("huref").at("by_token_limit").items()) {
        const Lineage got = compare(folder / "a", folder / "b", {std::stoll(limit)});
        EXPECT_EQ(got.awm.shared_tokens, want.at("shared_tokens"));
        EXPECT_EQ(got.awm.base_is_a ? "a" : "b", want.at("base"));
        EXPECT_EQ(json(got.awm.base_dimension), want.at("base_dimension"));
        EXPECT_EQ(json(got.awm.sign), want.at("sign"));
        EXPECT_EQ(json(pairs_of(got.awm)), want.at("layer_pairs"));
        double awm = std::max({std::abs(got.awm.similarity - want.at("similarity").get<double>()),
                               std::abs(got.awm.query_mean - want.at("average_Wq").get<double>()),
                               std::abs(got.awm.key_mean - want.at("average_Wk").get<double>())});
        for (const AttentionMatch::Layer& layer : got.awm.layers) {
            const std::string number = std::to_string(layer.pair.a);
            awm = std::max({awm, std::abs(layer.query - want.at("Wq").at(number).get<double>()),
                            std::abs(layer.key - want.at("Wk").at(number).get<double>())});
        }
        ASSERT_TRUE(got.huref) << got.why_no_huref;
        EXPECT_EQ(got.huref->tokens, terms.at("tokens"));
        const double huref = largest_difference(*got.huref, terms);
        std::printf("%s, %s tokens: largest difference AWM %.1e, HuRef %.1e\n", GetParam(), limit.c_str(),
                    awm, huref);
        EXPECT_LT(awm, 1e-5);
        EXPECT_LT(huref, 1e-4);
        EXPECT_EQ(expected.at("ours").at("verdict"), to_string(got.verdict));
        EXPECT_NEAR(got.awm.z, expected.at("ours").at("z").get<double>(), 1e-4);
        EXPECT_NEAR(got.awm.z_published, want.at("z_published").get<double>(), 1e-3);
    }
}

INSTANTIATE_TEST_SUITE_P(Lineage, AuthorsPairs,
                         ::testing::Values("continued", "disguised_gqa", "extended_vocabulary",
                                           "layers_pruned", "independent_other_width"),
                         [](const auto& pair) { return std::string(pair.param); });

TEST(LineageOfSamples, OneStartTrainedApartIsACommonOrigin) {
    // Computed independently in fp64.
    const fs::path samples = source_tree() / "sample_models";
    const Lineage got = compare(samples / "vanilla-neox-1m", samples / "ponderlm-neox-1m");
    EXPECT_NEAR(got.awm.similarity, 0.257565, 1e-5);
    EXPECT_NEAR(got.awm.z, 22.701904, 1e-4);
    ASSERT_TRUE(got.huref);
    EXPECT_NEAR(got.huref->ics, 0.013546, 1e-5);
    EXPECT_EQ(got.verdict, LineageVerdict::common_origin);
    EXPECT_EQ(compare(samples / "vanilla-neox-1m", samples / "chains/vanilla").verdict,
              LineageVerdict::none_found);
}

TEST(LineageVerdicts, HaveTheirBounds) {
    EXPECT_EQ(lineage_verdict(6), LineageVerdict::common_origin);
    EXPECT_EQ(lineage_verdict(5.99), LineageVerdict::undecided);
    EXPECT_EQ(lineage_verdict(3), LineageVerdict::undecided);
    EXPECT_EQ(lineage_verdict(2.99), LineageVerdict::none_found);
    EXPECT_EQ(lineage_verdict(-40), LineageVerdict::none_found);
}

/// One model's matrices, to be laid out as each kind of backbone lays them out.
class Kinds : public ::testing::Test {
protected:
    static constexpr std::int64_t d = 24, heads = 3, head = 8, f = 40, vocabulary = 90, narrow = 16;
    using Values = std::vector<float>;
    TemporaryFolder folder;
    std::uint64_t seed = 7;

    struct Layer {
        Values q, k, v, o, up, down; ///< [out, in]
    };
    Values embedding;         ///< [vocabulary, d]
    Values table, project_in; ///< [vocabulary, narrow] and [d, narrow]: their product is `embedding`
    std::vector<Layer> layers{2};

    void SetUp() override {
        table = random(vocabulary * narrow);
        project_in = random(d * narrow);
        for (std::int64_t t = 0; t < vocabulary; ++t) {
            for (std::int64_t i = 0; i < d; ++i) {
                double sum = 0;
                for (std::int64_t e = 0; e < narrow; ++e) {
                    sum += static_cast<double>(table[static_cast<std::size_t>(t * narrow + e)]) *
                           static_cast<double>(project_in[static_cast<std::size_t>(i * narrow + e)]);
                }
                embedding.push_back(static_cast<float>(sum));
            }
        }
        for (Layer& layer : layers) {
            layer = {random(d * d), random(d * d), random(d * d),
                     random(d * d), random(f * d), random(d * f)};
        }
    }

    Values random(std::int64_t count) {
        std::mt19937_64 draws(++seed);
        Values values;
        for (std::int64_t i = 0; i < count; ++i) {
            values.push_back(static_cast<float>(draws() >> 40) * 0x1.0p-24F - 0.5F);
        }
        return values;
    }
    static Values transposed(const Values& values, std::int64_t rows) {
        const auto n = static_cast<std::size_t>(rows);
        const std::size_t m = values.size() / n;
        Values result(values.size());
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < m; ++j) {
                result[j * n + i] = values[i * m + j];
            }
        }
        return result;
    }
    static Values together(std::initializer_list<const Values*> parts) {
        Values all;
        for (const Values* part : parts) {
            all.insert(all.end(), part->begin(), part->end());
        }
        return all;
    }
    /// Head by head: query, key, value.
    static Values interleaved(const Layer& layer) {
        Values all;
        for (std::int64_t h = 0; h < heads; ++h) {
            for (const Values* part : {&layer.q, &layer.k, &layer.v}) {
                all.insert(all.end(), part->begin() + h * head * d, part->begin() + (h + 1) * head * d);
            }
        }
        return all;
    }

    struct Tensor {
        std::vector<std::int64_t> shape;
        Values values;
    };
    using Tensors = std::map<std::string, Tensor>;

    fs::path write(const std::string& name, const json& config, const Tensors& tensors,
                   bool with_tokenizer = true) const {
        json header;
        std::string data;
        for (const auto& [tensor, content] : tensors) {
            const std::size_t bytes = content.values.size() * sizeof(float);
            header[tensor] = {{"dtype", "F32"},
                              {"shape", content.shape},
                              {"data_offsets", {data.size(), data.size() + bytes}}};
            data.append(reinterpret_cast<const char*>(content.values.data()), bytes);
        }
        const fs::path path = folder / name;
        fs::create_directory(path);
        put_file(path / "config.json", config.dump());
        put_file(path / "model.safetensors", safetensors(header.dump(), data));
        if (with_tokenizer) {
            json tokens;
            for (std::int64_t id = 0; id < vocabulary; ++id) {
                tokens["w" + std::to_string(id)] = id;
            }
            put_file(path / "tokenizer.json",
                     json{{"model", {{"type", "BPE"}, {"vocab", tokens}, {"merges", json::array()}}}}.dump());
        }
        return path;
    }

    /// Where a backbone keeps its matrices. fused: query, key and value in one.
    struct Layout {
        std::string type, stem, embedding, block, fused, query, key, value, output, up, down;
        bool transposed = false;
    };
    fs::path lay_out(const Layout& names, const std::string& folder_name, bool with_tokenizer = true) const {
        Tensors t{{names.stem + names.embedding, {{vocabulary, d}, embedding}}};
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const Layer& w = layers[l];
            const auto put = [&](const std::string& own, std::int64_t rows, const Values& values) {
                const auto columns = static_cast<std::int64_t>(values.size()) / rows;
                t[names.stem + names.block + std::to_string(l) + "." + own + ".weight"] =
                    names.transposed ? Tensor{{columns, rows}, transposed(values, rows)}
                                     : Tensor{{rows, columns}, values};
            };
            if (names.fused.empty()) {
                put(names.query, d, w.q);
                put(names.key, d, w.k);
                put(names.value, d, w.v);
            } else {
                put(names.fused, 3 * d, names.transposed ? together({&w.q, &w.k, &w.v}) : interleaved(w));
            }
            put(names.output, d, w.o);
            put(names.up, f, w.up);
            put(names.down, d, w.down);
        }
        json config{{"model_type", names.type},
                    {"hidden_size", d},
                    {"num_hidden_layers", layers.size()},
                    {"num_attention_heads", heads},
                    {"intermediate_size", f},
                    {"n_inner", f},
                    {"ffn_dim", f},
                    {"vocab_size", vocabulary}};
        if (names.type == "opt") { // embeddings that are narrower than the stack
            config["word_embed_proj_dim"] = narrow;
            t[names.stem + names.embedding] = {{vocabulary, narrow}, table};
            t[names.stem + "decoder.project_in.weight"] = {{d, narrow}, project_in};
        }
        return write(folder_name, config, t, with_tokenizer);
    }
    fs::path phi(const std::string& name = "phi", bool with_tokenizer = true) const {
        return lay_out({"phi", "model.", "embed_tokens.weight", "layers.", "", "self_attn.q_proj",
                        "self_attn.k_proj", "self_attn.v_proj", "self_attn.dense", "mlp.fc1", "mlp.fc2"},
                       name, with_tokenizer);
    }
    fs::path gpt2(const std::string& stem) const {
        return lay_out({"gpt2", stem, "wte.weight", "h.", "attn.c_attn", "", "", "", "attn.c_proj",
                        "mlp.c_fc", "mlp.c_proj", true},
                       "gpt2" + stem);
    }
    fs::path gpt_neox() const {
        return lay_out({"gpt_neox", "gpt_neox.", "embed_in.weight", "layers.", "attention.query_key_value",
                        "", "", "", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                       "neox");
    }
    fs::path opt(const std::string& stem) const {
        return lay_out({"opt", stem, "decoder.embed_tokens.weight", "decoder.layers.", "", "self_attn.q_proj",
                        "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "fc1", "fc2"},
                       "opt" + stem);
    }
};

TEST_F(Kinds, OneModelInEveryLayoutIsItself) {
    const fs::path reference = phi();
    for (const fs::path& other : {gpt2("transformer."), gpt2(""), gpt_neox(), opt("model."), opt("")}) {
        SCOPED_TRACE(other.filename());
        const Lineage got = compare(reference, other);
        EXPECT_NEAR(got.awm.similarity, 1, 1e-6);
        EXPECT_EQ(got.awm.dimensions_in_place(), d);
        EXPECT_EQ(got.awm.signs_flipped(), 0);
        ASSERT_TRUE(got.huref) << got.why_no_huref;
        for (const std::vector<double>& term : got.huref->correlation) {
            for (const double correlation : term) {
                EXPECT_NEAR(correlation, 1, 1e-6);
            }
        }
        EXPECT_EQ(got.verdict, LineageVerdict::common_origin);
    }
}

TEST_F(Kinds, FewAndManyTokensAgree) {
    // 90 tokens are more than the 24 dimensions, 20 are fewer: two ways to one number. With other weights
    // behind B, so that the correlation is not 1.
    const fs::path a = phi();
    for (Layer& layer : layers) {
        for (Values* values : {&layer.q, &layer.v, &layer.up}) {
            const Values noise = random(static_cast<std::int64_t>(values->size()));
            std::transform(values->begin(), values->end(), noise.begin(), values->begin(), std::plus<>());
        }
    }
    const fs::path b = phi("other");
    const Lineage few = compare(a, b, {20});
    ASSERT_TRUE(few.huref);
    EXPECT_EQ(few.huref->tokens, 20);
    // The last 20 of them once more, now as all tokens that there are, by way of a shorter vocabulary.
    json tokens;
    for (std::int64_t id = vocabulary - 20; id < vocabulary; ++id) {
        tokens["w" + std::to_string(id)] = id;
    }
    put_file(b / "tokenizer.json", json{{"model", {{"vocab", tokens}, {"merges", json::array()}}}}.dump());
    const Lineage all = compare(a, b);
    ASSERT_TRUE(all.huref);
    EXPECT_EQ(all.huref->tokens, 20);
    EXPECT_NEAR(all.huref->ics, few.huref->ics, 1e-12);
    EXPECT_LT(few.huref->ics, 0.95);
    EXPECT_EQ(ids_of(all.notices), NoticeIds{NoticeId::lineage_few_tokens});
}

TEST_F(Kinds, AModelWithoutATokenizerIsComparedAsItLies) {
    const Lineage got = compare(phi(), phi("bare", false));
    EXPECT_FALSE(got.awm.aligned);
    EXPECT_NEAR(got.awm.similarity, 1, 1e-6);
    ASSERT_TRUE(got.huref);
    EXPECT_EQ(got.huref->tokens, vocabulary);
    EXPECT_EQ(ids_of(got.notices), NoticeIds{NoticeId::lineage_unaligned});
}

TEST_F(Kinds, WrongWeightsGetASentence) {
    const fs::path good = phi();
    const auto sentence = [&](const fs::path& path) {
        return testing::sentence(folder.path(), [&] { (void)compare(good, path); });
    };
    const auto expect_error = [&](const fs::path& path, const std::vector<std::string>& parts) {
        const std::string said = sentence(path);
        EXPECT_TRUE(said.starts_with(path.filename().string() + ": ")) << said;
        for (const std::string& part : parts) {
            EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
        }
    };
    layers[1].k[5] = std::numeric_limits<float>::quiet_NaN();
    expect_error(phi("nan"), {"model.layers.1.self_attn.k_proj.weight", "[checkpoint.numbers]"});
    layers[1].k[5] = 0;
    const json config = json::parse(read_file(good / "config.json"));
    expect_error(write("empty", config, {{"model.embed_tokens.weight", {{vocabulary, d}, embedding}}}),
                 {"[checkpoint.tensor]"});
    Tensors flat{{"model.embed_tokens.weight", {{vocabulary, d}, embedding}},
                 {"model.layers.0.self_attn.q_proj.weight", {{d * d}, layers[0].q}},
                 {"model.layers.0.self_attn.k_proj.weight", {{d, d}, layers[0].k}}};
    expect_error(write("flat", config, flat),
                 {"[24, 24]", "model.layers.0.self_attn.q_proj.weight", "[576]", "[checkpoint.tensor]"});
    flat.erase("model.embed_tokens.weight");
    expect_error(write("blind", config, flat), {"model.embed_tokens.weight", "[checkpoint.tensor]"});
    const fs::path odd = phi("odd");
    put_file(odd / "tokenizer.json", R"({"model": {"vocab": 3}})");
    EXPECT_TRUE(sentence(odd).starts_with("odd/tokenizer.json: ")) << sentence(odd);
    EXPECT_NE(sentence(odd).find("\"model.vocab\""), std::string::npos) << sentence(odd);
    EXPECT_TRUE(sentence(odd).ends_with("[json.value]")) << sentence(odd);
    put_file(odd / "tokenizer.json", R"({"model": {"vocab": {"of nobody else": 1}}})");
    // No shared token, but one shape: compared as it lies, and HuRef has nothing to look at.
    const Lineage strangers = compare(good, odd);
    EXPECT_FALSE(strangers.awm.aligned);
    EXPECT_FALSE(strangers.huref);
    EXPECT_FALSE(strangers.why_no_huref.empty());
    EXPECT_EQ(error_id([&] { (void)compare(odd, source_tree() / "sample_models/vanilla-neox-1m"); }),
              "lineage.unaligned");
}

TEST_F(Kinds, ALayerWithoutFeedForwardHasNoInvariantTerms) {
    const fs::path good = phi();
    const json config = json::parse(read_file(good / "config.json"));
    Tensors attention{{"model.embed_tokens.weight", {{vocabulary, d}, embedding}}};
    for (const char* name : {"q_proj", "k_proj", "v_proj", "dense"}) {
        attention[std::string("model.layers.1.self_attn.") + name + ".weight"] = {{d, d}, layers[1].q};
    }
    const fs::path lean = write("lean", config, attention);
    const Lineage got = compare(good, lean);
    EXPECT_EQ(got.awm.layers.size(), 1U); // the better of A's two layers
    EXPECT_EQ(got.awm.layers[0].pair.b, 1);
    EXPECT_EQ(got.awm.layers[0].pair.a, 1);
    EXPECT_NEAR(got.awm.layers[0].query, 1, 1e-6);
    EXPECT_FALSE(got.huref);
    EXPECT_NE(got.why_no_huref.find("layer 1"), std::string::npos) << got.why_no_huref;
    EXPECT_EQ(ids_of(got.notices), NoticeIds{NoticeId::lineage_layers});
}

} // namespace
} // namespace ponderscope
