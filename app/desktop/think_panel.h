// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"
#include "app/desktop/samples.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"

#include <QLineEdit>
#include <QWidget>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace ponderscope {

/// The prompt and how the model goes on from it. New tokens appear in text, heatmap and inspector at once.
class ThinkPanel : public QWidget, public ShowsCommand {
    Q_OBJECT
public:
    explicit ThinkPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    /// Checkpoints that are offered: the installed ones, then the used ones. \p suggested, if given, is
    /// selected until the user chooses.
    void setCheckpoints(const QStringList& folders, const QString& suggested = {});
    void setRequest(const ThinkRequest& request);
    [[nodiscard]] ThinkRequest request() const; ///< without a trace
    /// While it runs the newest token is pinned, unless the user pinned another one.
    void setRunning(bool running);
    void setStatus(const QString& text);
    [[nodiscard]] QString status() const;
    void focusPrompt();
    void setOptions(const QString& line) { more_->setText(line); }

Q_SIGNALS:
    void thinkRequested(const ponderscope::ThinkRequest& request);
    void stopRequested();
    void checkpointWanted(); ///< a folder dialog

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void nameCheckpoints(); ///< with as much of their folders as tells them apart
    void start();
    void pinNewest();
    [[nodiscard]] qint64 newest() const; ///< token of the generation that the window shows; -1: another run

    ViewContext context_;
    QComboBox* checkpoint_;
    QPlainTextEdit* prompt_;
    QSpinBox* tokens_;
    QDoubleSpinBox* temperature_;
    QSpinBox* topK_;
    QDoubleSpinBox* topP_;
    QSpinBox* seed_;
    QComboBox* policy_;
    QLineEdit* more_;     ///< further options
    bool chosen_ = false; ///< a checkpoint, by the user
    QPushButton* think_;
    QPushButton* stop_;
    QLabel* status_;
    bool follows_ = true;
    bool running_ = false;
};

} // namespace ponderscope
