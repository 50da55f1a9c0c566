// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/rows.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <type_traits>
#include <variant>

namespace ponderscope::testing {

/// A folder of its own, and the path of a trace in it that nobody has written yet.
class TraceTest : public ::testing::Test {
protected:
    TemporaryFolder folder;
    std::filesystem::path path = folder / "a.ponder";
};

/// Every column of a row, by name.
template <class Row>
void expect_same_row(const Row& found, const Row& wanted) {
    for (const schema::Field<Row>& field : schema::fields<Row>()) {
        std::visit(
            [&](const auto member) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, std::monostate>) {
                    EXPECT_EQ(found.*member, wanted.*member) << field.name;
                }
            },
            field.member);
    }
}

} // namespace ponderscope::testing
