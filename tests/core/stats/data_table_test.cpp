// SPDX-License-Identifier: GPL-3.0-or-later
// One table in every form that a report has.
#include "core/stats/data_table.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

DataTable example() {
    using enum CellFormat;
    return {"table",
            {{"name", "Name", text},
             {"count", "Tokens", count},
             {"sides.nll", "NLL", number, 2, "nats"},
             {"share", "Share", share, 1},
             {"p", "p", p},
             {"flops", "FLOPs", si},
             {"hidden", "", number},
             {"", "shown only", significant, 2}},
            {{"a, \"b\"_1", std::int64_t{1234}, Estimate{1.5, 1.25, 2, 0.1, 0.25}, 0.125, 0.00001, 2.5e6, 0.5,
              0.1234},
             {"none", Cell(), Estimate{not_a_number, not_a_number, not_a_number}, not_a_number, 0.5, Cell(),
              true, Cell()}}};
}

TEST(DataTable, IsTheSameInEveryForm) {
    const DataTable table = example();
    EXPECT_EQ(text_of(table), "Name      Tokens                NLL   Share         p   FLOPs  shown only\n"
                              "a, \"b\"_1   1,234  1.50 [1.25, 2.00]  12.5 %  < 0.0001  2.50 M        0.12\n"
                              "none           -                  -       -    0.5000       -           -\n");
    EXPECT_EQ(list_of(table, 0, " "), " Name        a, \"b\"_1\n Tokens      1,234\n"
                                      " NLL         1.50 [1.25, 2.00] nats\n Share       12.5 %\n"
                                      " p           < 0.0001\n FLOPs       2.50 M\n shown only  0.12\n");
    EXPECT_EQ(list_of(table, 1), "Name        none\np           0.5000\n"); // what has no value is left out
    EXPECT_EQ(csv_of(table), "table,name,count,sides_nll,sides_nll_low,sides_nll_high,share,p,flops,hidden\n"
                             "table,\"a, \"\"b\"\"_1\",1234,1.5,1.25,2,0.125,1e-05,2500000,0.5\n"
                             "table,none,,,,,,0.5,,1\n");
    const nlohmann::json json = json_of(table);
    EXPECT_EQ(json[0]["sides"]["nll"],
              (nlohmann::json{{"value", 1.5}, {"low", 1.25}, {"high", 2.0}, {"detectable", 0.25}}));
    EXPECT_EQ(json[0]["count"], 1234);
    EXPECT_FALSE(json[0].contains("shown only"));
    EXPECT_FALSE(json[1].contains("count"));
    EXPECT_TRUE(json[1]["share"].is_null());
    EXPECT_EQ(json[1]["hidden"], true);
    EXPECT_EQ(latex_of(table),
              "\\begin{tabular}{lrrrrrr}\n\\toprule\n"
              "Name & Tokens & NLL & Share & p & FLOPs & shown only \\\\\n\\midrule\n"
              "a, \"b\"\\_1 & 1,234 & 1.50 [1.25, 2.00] & 12.5 \\% & < 0.0001 & 2.50 M & 0.12 \\\\\n"
              "none & -- & -- & -- & 0.5000 & -- & -- \\\\\n\\bottomrule\n\\end{tabular}\n");
    EXPECT_NE(text_of(table, 1).find("1 more"), std::string::npos);
    EXPECT_EQ(cell_value(table.at(0, "count")), 1234);
}

TEST(DataTable, TablesOfOneShapeAreOneCsvFile) {
    DataTable values = example();
    values.rows.erase(values.rows.begin()); // without an interval of its own
    values.name = "second, third";
    const DataTable both[] = {values, example()};
    const std::string csv = csv_of(both);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
    EXPECT_NE(csv.find("\n\"second, third\",none,,,,,,0.5,,1\n"), std::string::npos) << csv;
}

} // namespace
} // namespace ponderscope
