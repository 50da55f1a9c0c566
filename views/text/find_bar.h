// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/token_subset.h"
#include "views/common/view_context.h"
#include "views/text/find_query.h"

#include <QAbstractListModel>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

class QLabel;
class QLineEdit;
class QListView;
class QTimer;
class QToolButton;

namespace ponderscope {

class HitModel;
class TextView;

/// The find bar (Ctrl+F): finds text, a /pattern/ or a condition in the shown sequence, or in all sequences
/// of the run. Enter goes to the next hit, Shift+Enter to the previous one (also in other sequences), Escape
/// closes the bar. Hits have outlines in the text and ticks on the minimap. On request, a list shows hits
/// with the words around them. The user can restrict Compare to the hits.
class FindBar : public QWidget {
    Q_OBJECT
public:
    FindBar(const ViewContext& context, TextView& view, QWidget* parent = nullptr);
    void open();
    void setQuery(const QString& query);
    [[nodiscard]] QString query() const; ///< empty if the bar is closed
    [[nodiscard]] HitModel& model() { return *model_; }
    void setListed(bool on);
    /// The list uses at most a part of \p height, so that the text stays visible.
    void setRoom(int height);
    /// Whether all sequences of the run are searched.
    void setWholeRun(bool on);
    [[nodiscard]] const std::vector<qint64>& hits() const { return hits_; } ///< hits in the shown sequence
    /// The hits in the whole run; null: the run was not searched, or the search is still running.
    [[nodiscard]] const FoundInRun* found() const { return found_ ? &*found_ : nullptr; }
    [[nodiscard]] QString status() const;
    [[nodiscard]] TokenSubset subset() const;
    [[nodiscard]] bool isBusy() const { return inRun_.isBusy() || searching_.isBusy(); }

Q_SIGNALS:
    void queryChanged();
    void sent(const ponderscope::TokenSubset& subset); ///< the user sent the hits to Compare

public Q_SLOTS:
    void next() { go(1); }
    void previous() { go(-1); }
    void close();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void search(bool jump);
    void showFound(Found found, bool jump);
    void go(qint64 direction);
    void showStatus();
    void searchRun();
    /// Moves to the next or previous sequence with hits. False: no other sequence has hits.
    bool leave(qint64 direction);

    ViewContext context_;
    TextView& view_;
    QLineEdit* edit_;
    QLabel* status_;
    std::vector<qint64> hits_;
    QString problem_; ///< error in the pattern; else empty
    QString hint_;    ///< shown in place of "not found"
    QToolButton* send_;
    Task inRun_;     ///< the search of the whole run
    Task searching_; ///< search in long texts
    QToolButton* wholeRun_;
    std::optional<FoundInRun> found_;
    QString foundBy_;     ///< query of found_, or of the running search
    qint64 arriving_ = 0; ///< in the next sequence, select the first (1) or the last (-1) hit
    qint64 searched_ = 0; ///< sequences of the run searched so far
    QTimer* delay_;
    QToolButton* listed_;
    HitModel* model_;
    QListView* list_;
};

/// The hits of a search with the words around them.
class HitModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role { TokenRole = Qt::UserRole };
    explicit HitModel(const ViewContext& context, QObject* parent = nullptr)
        : QAbstractListModel(parent), context_(context) {}

    /// \p hits: ascending tokens of \p block.
    void show(std::shared_ptr<const SequenceData> block, std::vector<qint64> hits);
    [[nodiscard]] QModelIndex indexOf(qint64 token) const; ///< invalid: not a hit

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override {
        return parent.isValid() ? 0 : static_cast<int>(hits_.size());
    }
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

private:
    ViewContext context_;
    std::shared_ptr<const SequenceData> block_;
    std::vector<qint64> hits_;
};

} // namespace ponderscope
