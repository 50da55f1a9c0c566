// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QWidget>

class QCheckBox;
class QComboBox;

namespace ponderscope {

class FindBar;
class Legend;
class TextView;

/// The centre of the window: what colours the text, its legend, the text.
class TextPanel : public QWidget {
    Q_OBJECT
public:
    explicit TextPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] TextView& view() { return *view_; }
    [[nodiscard]] FindBar& findBar() { return *find_; }
    [[nodiscard]] Legend& legend() { return *legend_; }

public slots:
    void find();
    void findText(const QString& query); ///< opens the find bar with it
    void findNext();
    void findPrevious();
    void setDifference(bool on);
    void setQuantity(ponderscope::Quantity quantity);

signals:
    void replayDismissed(); ///< a recorded quantity was chosen while the text showed a replay
    void helpRequested();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void nameColour(); ///< the box says what colours the text, a replay too

    ViewContext context_;
    TextView* view_;
    FindBar* find_;
    Legend* legend_;
    QComboBox* colour_;
    QComboBox* bars_;
    QCheckBox* difference_;
    QWidget* controls_;
};

} // namespace ponderscope
