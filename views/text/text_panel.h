// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/controls.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/figure/spec.h"
#include "views/text/quantity.h"

#include <QWidget>

#include <optional>

class QCheckBox;
class QComboBox;
class QStackedWidget;
class QLabel;
class QTableView;

namespace ponderscope {

class CorpusMap;
class FindBar;
class Legend;
class SpanBar;
class TextView;
class TokenModel;

enum class TextZoom {
    tokens, ///< one line for each token, with its numbers
    text,   ///< running text in a chosen size
    corpus, ///< one pixel for each token, all sequences
};

/// The centre of the window: the chooser of the text's colour, its legend, and the text.
class TextPanel : public QWidget, public ShowsCommand {
    Q_OBJECT
public:
    explicit TextPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    /// A figure of the text's content: its tokens, its colour, A and B.
    [[nodiscard]] figure::FigureSpec figureSpec(figure::FigureKind kind) const;
    [[nodiscard]] TextView& view() { return *view_; }
    /// Why the text has no colour (shown over the text); else empty.
    [[nodiscard]] QString notice() const;
    [[nodiscard]] FindBar& findBar() { return *find_; }
    [[nodiscard]] Legend& legend() { return *legend_; }
    [[nodiscard]] SpanBar& spanBar() { return *spanBar_; }
    [[nodiscard]] QComboBox& colourBox() { return *colour_; }
    [[nodiscard]] QComboBox& barsBox() { return *bars_; }
    [[nodiscard]] CorpusMap& corpus() { return *corpus_; }
    [[nodiscard]] QTableView& table() { return *table_; }
    [[nodiscard]] TextZoom zoom() const { return zoom_; }
    [[nodiscard]] bool isBusy() const; ///< whether visible content is still being laid out or read

public Q_SLOTS:
    void find();
    void findText(const QString& query); ///< opens the find bar with this query
    void listNotes();                    ///< lists all tokens with a note
    void findNext();
    void findPrevious();
    /// Sets the quantities that the text shows as colour and as bars. Ends a replay that colours the text.
    void setLook(const ponderscope::TextLook& look);
    void setDifference(bool on);
    /// Shows only the text and the meaning of its colours, for presentations.
    void setPlain(bool plain);
    void setQuantity(ponderscope::Quantity quantity);
    void setAnnotation(const QString& name); ///< colours by this annotation; empty: by the quantity
    void setBars(std::optional<ponderscope::Quantity> quantity);
    void setZoom(ponderscope::TextZoom zoom);
    void zoomIn() { zoomBy(1); }   ///< larger text, then one line a token
    void zoomOut() { zoomBy(-1); } ///< smaller text, then the corpus map

Q_SIGNALS:
    void replayDismissed(); ///< the user chose a recorded quantity while the text showed a replay
    void helpRequested();
    void figureWanted(); ///< the user wants a figure of the chosen span
    void failed(const QString& sentence);
    void viewChanged(); ///< quantity, bars, difference, zoom or search query changed

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void fillBoxes(); ///< fills the choosers of colour and bars
    void zoomBy(int points);
    void buildZoom();
    void showRow(qint64 token);
    void fillTable();
    void askForRange();

    ViewContext context_;
    TextView* view_;
    FindBar* find_;
    SpanBar* spanBar_;
    Legend* legend_;
    QComboBox* colour_;
    QComboBox* bars_;
    QCheckBox* difference_;
    QWidget* controls_;
    QLabel* notice_;
    QComboBox* zoomBox_;
    QStackedWidget* stack_;
    QTableView* table_;
    TokenModel* model_;
    CorpusMap* corpus_;
    TextZoom zoom_ = TextZoom::text;
    WheelNotches tableWheel_;
};

} // namespace ponderscope
