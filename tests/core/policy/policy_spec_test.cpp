// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/policy/policy.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

TEST(PolicySpec, IsPrintedBackCanonically) {
    const struct {
        const char* text;
        const char* canonical;
    } cases[] = {
        {"full", "full"},
        {"  full ", "full"},
        {"learned", "learned"},
        {"learned:theta=5e-1", "learned:theta=0.5"},
        {"fixed:n=2", "fixed:n=2"},
        {"uniform", "uniform:seed=20261122"},
        {"uniform: seed=7 , rate=1.20", "uniform:rate=1.2,seed=7"},
        {"geometric:rate=0,seed=18446744073709551615", "geometric:rate=0,seed=18446744073709551615"},
        {"oracle", "oracle"},
        {"calm_margin:lambda=0.90", "calm_margin:lambda=0.9"},
        {"calm_cosine:lambda=1", "calm_cosine:lambda=1"},
        {"entropy:theta=2.99825", "entropy:theta=2.99825"},
        {"entropy:theta=-0.0", "entropy:theta=0"},
        {"entropy_difference", "entropy_difference:theta=0.001"},
        {"kl", "kl:theta=5e-04"},
        {"latent_difference", "latent_difference:theta=0.03"},
        {"second_order:theta=0.5", "second_order:theta=0.5,hits=1"},
        {"argmax_stable", "argmax_stable:n=5"},
        {"learned:theta=-2.5", "learned:theta=-2.5"},
        {"signal: name=my_gate , theta=0.50", "signal:name=my_gate,stops=below,theta=0.5"},
        {"signal:theta=-3,stops=above,name=gate", "signal:name=gate,stops=above,theta=-3"},
        {"signal:name=entropy,theta=2", "signal:name=entropy,stops=below,theta=2"},
    };
    for (const auto& [text, canonical] : cases) {
        const PolicySpec spec = PolicySpec::parse(text);
        const std::string written = spec.text();
        EXPECT_EQ(PolicySpec::parse(written), spec) << text;
        EXPECT_EQ(PolicySpec::parse(written).text(), written);
        EXPECT_EQ(written, PolicySpec::parse(canonical).text()) << text;
        if (std::string(canonical).find("e-") == std::string::npos) {
            EXPECT_EQ(written, canonical);
        }
    }
}

TEST(PolicySpec, EveryKindHasARuleAndADefaultOrAMessage) {
    EXPECT_EQ(policy_kinds().size(), 14U);
    for (const PolicyKind& kind : policy_kinds()) {
        EXPECT_FALSE(kind.rule.empty()) << kind.name;
        EXPECT_NE(kind.make, nullptr) << kind.name;
        for (const PolicyParameter& parameter : kind.parameters) {
            EXPECT_FALSE(parameter.meaning.empty()) << kind.name;
            EXPECT_LE(parameter.low, parameter.high) << kind.name;
        }
    }
}

/// A mistake, and what its sentence must name: the nearest name, the key or the value.
struct Mistake {
    const char* text;
    const char* named;
};

template <typename Parse>
void expect_named(const std::vector<Mistake>& mistakes, const Parse& parse) {
    for (const auto& [text, named] : mistakes) {
        const std::string sentence = testing::error_of([&, wrong = text] { parse(wrong); });
        EXPECT_NE(sentence, "") << text;
        EXPECT_NE(sentence.find(named), std::string::npos) << named << " in: " << sentence;
        EXPECT_EQ(sentence.find('\n'), std::string::npos) << text;
    }
}

TEST(PolicySpec, MistakesAreNamed) {
    const auto parse = [](const std::string& text) { (void)PolicySpec::parse(text); };
    expect_named({{"calm_margn:lambda=0.9", " calm_margin?"},
                  {"Full", " full?"},
                  {"entropydifference", " entropy_difference?"},
                  {"entrpydiferenc", " entropy_difference?"},
                  {"nonsense", "full, learned"},
                  {"full:n=1", "\"n\""},
                  {"learned:tau=0.5", "\"tau\""},
                  {"signal:name=gate,lambda=1", "\"lambda\""},
                  {"learned:0.5", "\"0.5\""},
                  {"learned:theta=abc", "\"abc\""},
                  {"learned:theta=0.5x", "\"0.5x\""},
                  {"learned:theta=0,5", "\"5\""},
                  {"learned:theta=nan", "\"nan\""},
                  {"calm_margin:lambda=-0.1", "\"-0.1\""},
                  {"signal:name=gate,stops=at,theta=1", "\"at\""},
                  {"signal:name=gate,name=gate,theta=1", " name "},
                  {"signal:name=gate", "signal:name=gate,stops=below,theta=NUMBER"},
                  {"signal", "signal:name=gate,theta=NUMBER"},
                  {"fixed", "fixed:n=NUMBER"},
                  {"fixed:n=1.5", "\"1.5\""},
                  {"fixed:n=-1", "\"-1\""},
                  {"uniform:rate=-1", "\"-1\""},
                  {"calm_margin", "calm_margin:lambda=NUMBER"},
                  {"calm_cosine:lambda=3", " 2 "}},
                 parse);
    for (const char* unknown : {"calm_margn", "Full", ":theta=1", "nonsense"}) {
        EXPECT_EQ(testing::error_id([&] { parse(unknown); }), "policy.unknown") << unknown;
    }
    for (const char* wrong :
         {"full:", "learned:theta", "learned:theta=", "learned:theta=0.1,theta=0.2", "learned:theta=0.1,",
          "signal:theta=1", "signal:name=,theta=1", "signal:name=gate,theta=inf", "entropy",
          "entropy:theta=inf", "uniform:seed=18446744073709551616", "uniform:seed=-1", "kl:theta=-5e-4",
          "argmax_stable:n=0"}) {
        EXPECT_EQ(testing::error_id([&] { parse(wrong); }), "policy.value") << wrong;
    }
    for (const std::string& nothing :
         {std::string(), std::string("   "), std::string(100'000, 'a'), std::string("full\n:x=1")}) {
        EXPECT_THROW(parse(nothing), InputError);
    }
}

TEST(PolicySpec, ASweepMovesAKey) {
    EXPECT_EQ(PolicySpec::parse("learned").with("theta", 0.5).text(), "learned:theta=0.5");
    EXPECT_EQ(PolicySpec::parse("fixed:n=0").with("n", 3).text(), "fixed:n=3");
    EXPECT_EQ(PolicySpec::parse("uniform:seed=7").with("rate", 1.5).text(), "uniform:rate=1.5,seed=7");
    EXPECT_THROW((void)PolicySpec::parse("fixed:n=0").with("n", 1.5), InputError);
    EXPECT_THROW((void)PolicySpec::parse("full").with("theta", 1), InputError);
    EXPECT_THROW((void)PolicySpec::parse("learned").with("lambda", 0.5), InputError);
    EXPECT_THROW((void)PolicySpec::parse("calm_margin:lambda=1").with("lambda", 3), InputError);
    EXPECT_EQ(PolicySpec::parse("signal:name=g,theta=1").with("theta", -2).text(),
              "signal:name=g,stops=below,theta=-2");
    // The key that is swept need not be given.
    EXPECT_EQ(PolicySpec::named_kind("entropy").name, "entropy");
    EXPECT_EQ(PolicySpec::named_kind("signal:name=g,stops=above").name, "signal:name=g,stops=above");
    EXPECT_EQ(PolicySpec::named_kind("entropy:theta=3").name, "entropy");
    EXPECT_THROW((void)PolicySpec::named_kind("entrop"), InputError);
}

TEST(PolicyKinds, RulesOverASignalAreFoundByName) {
    EXPECT_EQ(find_policy_kind("entropy"), PolicySpec::parse("entropy:theta=1").kind);
    EXPECT_EQ(find_policy_kind("signal:name=g"), PolicySpec::parse("signal:name=g,theta=1").kind);
    EXPECT_EQ(find_policy_kind("signal:name=g")->name, "signal:name=g,stops=below");
    EXPECT_NE(find_policy_kind("signal:name=g"), find_policy_kind("signal:name=g,stops=above"));
    EXPECT_EQ(find_policy_kind("signal:name=g,theta=1"), nullptr) << "a policy, not a kind";
    EXPECT_EQ(find_policy_kind("signal"), nullptr);
    EXPECT_EQ(find_policy_kind("nonsense"), nullptr);
    EXPECT_TRUE(find_policy_kind("signal:name=entropy")->reads_head());
    EXPECT_TRUE(find_policy_kind("signal:name=entropy")->can_run());
    EXPECT_FALSE(find_policy_kind("signal:name=g")->can_run()) << "the engine does not compute it";
    EXPECT_FALSE(find_policy_kind("signal:name=nll")->causal) << "it knows the next token";
}

TEST(Sweep, ReadsRangesAndLists) {
    const Sweep linear = Sweep::parse("theta=0:1:5");
    EXPECT_EQ(linear.key, "theta");
    EXPECT_EQ(linear.values, (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
    EXPECT_EQ(Sweep::parse(" lambda = 0.9, 0.1 ").values, (std::vector<double>{0.9, 0.1}));
    EXPECT_EQ(Sweep::parse("theta=3:4:6").values, (std::vector<double>{3, 3.2, 3.4, 3.6, 3.8, 4}));
    EXPECT_EQ(Sweep::parse("n=3:0:4").values, (std::vector<double>{3, 2, 1, 0}));
    // Between the ends twelve digits; the ends are what was written, to the last bit.
    const Sweep written = Sweep::parse("theta=0.12345678901234567:0.98765432109876543:3");
    EXPECT_EQ(written.values,
              (std::vector<double>{0.12345678901234567, 0.555555555056, 0.98765432109876543}));
    const Sweep ratios = Sweep::parse("theta=1e-4:1:5:log");
    ASSERT_EQ(ratios.values.size(), 5U);
    EXPECT_EQ(ratios.values.front(), 1e-4);
    EXPECT_NEAR(ratios.values[2], 1e-2, 1e-15);
    EXPECT_EQ(ratios.values.back(), 1.0);
}

TEST(Sweep, MistakesAreNamed) {
    const auto parse = [](const std::string& text) { (void)Sweep::parse(text); };
    expect_named({{"theta=a:b:3", "\"a\""},
                  {"theta=0.1,,0.2", "\"\""},
                  {"theta=0:1", "2 numbers"},
                  {"theta=0:1:5:6", "4 numbers"},
                  {"theta=0:1:1", "from 2 to 10000"},
                  {"theta=0:1:3:log", "positive"}},
                 parse);
    for (const char* wrong : {"", "0:1:5", "theta=", "theta=0:1:2.5", "theta=0:1:100000", "theta=nan,1"}) {
        EXPECT_THROW(parse(wrong), InputError) << wrong;
    }
}

} // namespace
} // namespace ponderscope
