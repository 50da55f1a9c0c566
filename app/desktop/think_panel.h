// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"
#include "views/common/controls.h"
#include "views/common/live_view.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QWidget>

class QLabel;

namespace ponderscope {

class Branches;

/// A prompt and its continuation by a model. New tokens appear at once in text, heatmap and inspector.
class ThinkPanel : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit ThinkPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    [[nodiscard]] bool isBusy() const override { return false; }
    [[nodiscard]] Branches& branches() { return *branches_; }

    /// Sets the offered checkpoints. \p suggested is selected until the user chooses.
    void setCheckpoints(const QStringList& folders, const QString& suggested = {});
    void setRequest(const ThinkRequest& request);
    [[nodiscard]] ThinkRequest request() const; ///< empty `trace`
    /// During a run the newest token is pinned, unless the user pinned another token.
    void setRunning(bool running);
    void setStatus(const QString& text);
    [[nodiscard]] QString status() const;
    void focusPrompt();
    void setOptions(const QString& line) { more_->setText(line); }

Q_SIGNALS:
    void thinkRequested(const ponderscope::ThinkRequest& request);
    void stopRequested();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void renew() override;
    void renewCandidates();
    /// Lists checkpoints by the last parts of their paths, just long enough to differ.
    void offer(QStringList folders, const QString& wanted);
    void start();
    void pinNewest();
    [[nodiscard]] qint64 newest() const; ///< newest token of the shown generation; -1: another run is shown

    ViewContext context_;
    QComboBox* checkpoint_ = new QComboBox(this);
    QPlainTextEdit* prompt_ = new QPlainTextEdit(this);
    Branches* branches_;
    QSpinBox* tokens_ = new QSpinBox(this);
    QDoubleSpinBox* temperature_ = new NumberBox(this);
    QSpinBox* topK_ = new QSpinBox(this);
    QDoubleSpinBox* topP_ = new NumberBox(this);
    QSpinBox* seed_ = new QSpinBox(this);
    QComboBox* policy_ = new QComboBox(this);
    QLineEdit* more_ = new QLineEdit(this); ///< further options
    bool chosen_ = false;                   ///< the user chose a checkpoint
    QPushButton* think_ = new QPushButton(u"Think"_s, this);
    QPushButton* stop_ = new QPushButton(u"Stop"_s, this);
    QLabel* status_;
    bool follows_ = true;
    bool running_ = false;
};

} // namespace ponderscope
