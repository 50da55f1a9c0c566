// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/comparison_job.h"

#include "core/base/error.h"
#include "core/base/given_up.h"
#include "views/common/hand_over.h"

#include <QMetaObject>

#include <utility>

namespace ponderscope {

ComparisonJob::ComparisonJob(ComparisonRequest request, QObject* parent) : QObject(parent) {
    thread_ = std::jthread([this, request = std::move(request)](const std::stop_token& stop) {
        const GivenUpBy scope(stop);
        // Posted to this object: what is still under way when it is destroyed is dropped by Qt.
        const auto fail = [this](const QString& sentence) {
            hand_over(this, [this, sentence] { Q_EMIT failed(sentence); });
        };
        try {
            const auto progress = [this](const Progress& now) {
                const auto share = static_cast<int>(now.total > 0 ? now.done * 1000 / now.total : 0);
                hand_over(this, [this, share] { Q_EMIT progressed(share); });
            };
            auto result = std::make_shared<const RunComparison>(compare_runs(request, progress, stop));
            if (!stop.stop_requested()) {
                hand_over(this, [this, result] { Q_EMIT done(result); });
            }
        } catch (const Cancelled&) {
            return;
        } catch (const Error& error) {
            fail(QString::fromUtf8(error.what()));
        } catch (const std::bad_alloc&) {
            fail(tr("There is not enough memory to compare these runs."));
        } catch (const std::exception& error) {
            fail(tr("The runs could not be compared: %1.").arg(QString::fromUtf8(error.what())));
        }
    });
}

ComparisonJob::~ComparisonJob() {
    thread_.request_stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void ComparisonJob::cancel() {
    thread_.request_stop();
}

} // namespace ponderscope
