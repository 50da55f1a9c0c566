// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/token_subset.h"
#include "views/common/view_context.h"
#include "views/text/span.h"

#include <QWidget>

class QLabel;
class QMenu;
class QToolButton;

namespace ponderscope {

class TextView;

/// The bar of the selected span below the text: means, copy, label. Visible while a span is selected.
class SpanBar : public QWidget {
    Q_OBJECT
public:
    SpanBar(const ViewContext& context, TextView& view, QWidget* parent = nullptr);
    void copy() const;
    /// Writes a label to the annotations file on another thread. The text shows the label after the write.
    void label(const RunKey& run, qint64 sequence, TokenSpan span, const QString& annotation,
               const QString& name);
    /// Asks for a class of the span, or else of the selected token. \p wanted: the suggested annotation.
    void askForLabel(const QString& wanted);
    /// Adds the note "bookmark" to the selected token, or removes it. Other notes stay.
    void toggleBookmark();
    void addActions(QMenu& menu);
    [[nodiscard]] QString said() const;
    [[nodiscard]] bool isBusy() const { return writing_.isBusy(); }

Q_SIGNALS:
    void figureWanted();
    void sent(const ponderscope::TokenSubset& subset); ///< the user sent the span to Compare
    void failed(const QString& sentence);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void showSpan();
    /// False, with a message, if labels cannot be written for the trace.
    [[nodiscard]] bool canLabel();
    [[nodiscard]] TokenSpan spanOrToken() const;

    ViewContext context_;
    TextView& view_;
    QLabel* words_;
    QToolButton* copy_;
    QToolButton* label_;
    Task writing_;
};

} // namespace ponderscope
