// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"
#include "app/desktop/lineage_result.h"

#include <QDialog>

class QLabel;
class QPushButton;

namespace ponderscope {

class ChartView;
class CommandLine;
class PathEdit;
class Theme;

/// Do two checkpoints have a common origin? Asks `ponderscope lineage` in a process of its own and shows the
/// verdict, what it rests on, and both measures by layer. Shows the command line, as the Record dialog does.
class RelatedDialog : public QDialog {
    Q_OBJECT
public:
    explicit RelatedDialog(Theme& theme, QWidget* parent = nullptr);

    void setCheckpoints(const QString& a, const QString& b);
    /// What is missing, as a sentence; empty when it can start.
    [[nodiscard]] QString problem() const;
    [[nodiscard]] QString commandLine() const;
    [[nodiscard]] EngineProcess& engine() { return engine_; }
    [[nodiscard]] const std::optional<LineageResult>& result() const { return result_; }
    [[nodiscard]] QString verdict() const;
    [[nodiscard]] QString words() const; ///< below the verdict: what it means, or what went wrong
    void startOrStop();

private:
    [[nodiscard]] QStringList arguments() const;
    void check();
    void forget(); ///< the result is of other checkpoints
    void readProgress(const QByteArray& line);
    void end(EngineProcess::End end, const QString& sentence);
    void showResult();
    void say(const QString& verdict, const QString& words);

    Theme& theme_;
    EngineProcess engine_;
    QByteArray output_;
    std::optional<LineageResult> result_;
    PathEdit* a_;
    PathEdit* b_;
    QLabel* verdict_;
    QLabel* words_;
    QLabel* figures_;
    ChartView* attention_;
    ChartView* terms_;
    QLabel* notices_;
    CommandLine* command_;
    QPushButton* start_ = nullptr;
};

} // namespace ponderscope
