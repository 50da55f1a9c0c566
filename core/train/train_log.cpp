// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/train_log.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/words.h"

#include <cerrno>
#include <string_view>

namespace ponderscope {

namespace {

constexpr std::string_view csv_header =
    "step,tokens,loss,learning_rate,gradient_norm,held_out_nll,penalty,mean_steps,seconds\n";

/// The lines of \p log that belong to steps up to \p step; whatever does not start with a step number ends
/// them.
std::string rows_up_to(std::string_view log, std::int64_t step) {
    std::string kept(csv_header);
    std::size_t begin = log.find('\n');
    while (begin != std::string_view::npos) {
        const std::size_t end = log.find('\n', ++begin);
        const std::string_view line = log.substr(begin, end == std::string_view::npos ? 0 : end - begin + 1);
        std::int64_t of = 0;
        const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), of);
        if (error != std::errc() || of > step || stop == line.data() + line.size() || *stop != ',') {
            break;
        }
        kept += line;
        begin = end;
    }
    return kept;
}

} // namespace

TrainLog::TrainLog(const std::filesystem::path& path, std::optional<std::int64_t> resume_after)
    : path_(path) {
    std::string kept(csv_header);
    std::error_code ignored;
    if (resume_after && std::filesystem::is_regular_file(path, ignored)) {
        kept = rows_up_to(read_file(path), *resume_after);
    }
    write_file_atomically(path, kept);
    file_.open(path, std::ios::binary | std::ios::app);
    if (!file_) {
        throw_file_error(path, errno, "written");
    }
}

void TrainLog::append(const TrainLogRow& row) {
    std::string line = std::to_string(row.step) + ',' + std::to_string(row.tokens) + ',' +
                       shortest(row.loss) + ',' + shortest(row.learning_rate) + ',' +
                       shortest(row.gradient_norm) + ',';
    if (row.held_out_nll) {
        line += shortest(*row.held_out_nll);
    }
    for (const std::optional<double>& number : {row.penalty, row.mean_steps}) {
        line += ',' + (number ? shortest(*number) : std::string());
    }
    line += ',' + shortest(row.seconds) + '\n';
    errno = 0;
    file_ << line << std::flush;
    if (!file_) {
        throw_file_error(path_, errno != 0 ? errno : EIO, "written");
    }
}

} // namespace ponderscope
