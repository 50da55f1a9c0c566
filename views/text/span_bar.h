// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/view_context.h"
#include "views/text/span.h"

#include <QTimer>
#include <QWidget>

class QLabel;
class QMenu;
class QToolButton;

namespace ponderscope {

class TextView;

/// The bar of the selected span below the text: statistics, copy, label. Visible while there is a span.
class SpanBar : public QWidget {
    Q_OBJECT
public:
    SpanBar(const ViewContext& context, TextView& view, QWidget* parent = nullptr);
    void copy() const;
    /// Writes the label beside the trace, on a thread of its own; the text has it when it is written.
    void label(const QString& annotation, const QString& name);
    /// Asks for a class of the span, or of the selected token without a span. \p wanted: the annotation that
    /// is suggested.
    void askForLabel(const QString& wanted);
    /// Gives the selected token the note "bookmark", or takes it away. Another note stays.
    void toggleBookmark();
    /// Actions for the span, for a menu.
    void addActions(QMenu& menu);
    [[nodiscard]] QString said() const;
    [[nodiscard]] bool isBusy() const {
        return measuring_.isBusy() || writing_.isBusy() || delay_.isActive();
    }

Q_SIGNALS:
    void figureWanted();
    void failed(const QString& sentence);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void showSpan();
    void measure();
    [[nodiscard]] qint64 max_steps_of(const RunKey& key) const;
    /// False, with a message, if the trace takes no labels.
    [[nodiscard]] bool canLabel();
    [[nodiscard]] TokenSpan spanOrToken() const;
    void write(const RunKey& run, qint64 sequence, TokenSpan span, const QString& annotation,
               const QString& name);

    ViewContext context_;
    TextView& view_;
    QLabel* words_;
    QToolButton* copy_;
    QToolButton* label_;
    QTimer delay_;
    Task measuring_;
    Task writing_;
};

} // namespace ponderscope
