#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The calibration of tests, intervals, bands and seeds at full size: 4,000 simulated samples of each kind, or
# as many as PONDERSCOPE_CALIBRATION_SAMPLES says, with the slack that fewer need. Takes about an hour; fails
# where a rate lies outside of what resources/docs/statistics.md promises.
#   tests/core/stats/calibrate.sh build/release/tests/stats_test
set -eu
PONDERSCOPE_CALIBRATION=full exec "${1:-build/release/tests/stats_test}" --gtest_filter='Calibration.*'
