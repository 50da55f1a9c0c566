// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/quantities.h"

#include <QObject>
#include <QString>

#include <algorithm>
#include <optional>

namespace ponderscope {

/// Identifies a run of a trace file.
struct RunKey {
    QString trace;  ///< absolute path
    qint64 run = 0; ///< RunInfo::id; 0 = none
    [[nodiscard]] bool isValid() const { return run > 0; }
    friend bool operator==(const RunKey&, const RunKey&) = default;
    friend bool operator<(const RunKey& a, const RunKey& b) {
        return a.trace != b.trace ? a.trace < b.trace : a.run < b.run;
    }
};

/// The token at which the window shows a prediction's values. A trace stores the prediction of token t+1 in
/// row t, where the model computes it. A reader of text expects the difficulty of a word at the word itself.
enum class Attribution {
    predicted,  ///< at the predicted token: token t shows row t-1; the first token shows nothing
    predicting, ///< at the predicting token: token t shows row t; the last token has no target
};

/// The quantities that the text shows as colour and as bars. Views, sessions and undo share them.
struct TextLook {
    Quantity quantity = Quantity::nll;
    QString annotation; ///< colours by this annotation; empty: by the quantity
    std::optional<Quantity> bars = Quantity::steps;
    bool difference = false; ///< A − B of the quantity
    friend bool operator==(const TextLook&, const TextLook&) = default;
};

/// The selection that all views share. Hovering shows a token, a click pins it, arrow keys move the pin.
/// Setters emit only on change. A is the shown run, B the run for comparison. Both show the same sequence
/// number.
class Selection : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    [[nodiscard]] RunKey runA() const { return runA_; }
    [[nodiscard]] RunKey runB() const { return runB_; }
    [[nodiscard]] qint64 sequence() const { return sequence_; }
    [[nodiscard]] qint64 token() const { return token_; } ///< pinned token of the sequence; -1 = none
    [[nodiscard]] qint64 hover() const { return hover_; } ///< token under the cursor; -1 = none
    [[nodiscard]] qint64 shown() const {
        return hover_ >= 0 ? hover_ : token_;
    }                                                  ///< the token that the inspectors show
    [[nodiscard]] int step() const { return step_; }   ///< -1 = last step that ran
    [[nodiscard]] int layer() const { return layer_; } ///< -1 = none
    [[nodiscard]] int head() const { return head_; }   ///< -1 = mean

    [[nodiscard]] const TextLook& look() const { return look_; }
    [[nodiscard]] Attribution attribution() const { return attribution_; }
    /// The row, in TokenColumns and signals, whose values a token shows; -1 = none.
    [[nodiscard]] qint64 rowOf(qint64 token) const {
        return attribution_ == Attribution::predicted ? token - 1 : token;
    }
    /// The token that shows the values of a row. May be one past the last token.
    [[nodiscard]] qint64 tokenOf(qint64 row) const {
        return attribution_ == Attribution::predicted ? row + 1 : row;
    }

public Q_SLOTS:
    void setRunA(const ponderscope::RunKey& run) { set(runA_, run, &Selection::runsChanged); }
    void setRunB(const ponderscope::RunKey& run) { set(runB_, run, &Selection::runsChanged); }
    void setSequence(qint64 sequence);
    void setToken(qint64 token) { set(token_, std::max<qint64>(token, -1), &Selection::tokenChanged); }
    void setHover(qint64 token) { set(hover_, std::max<qint64>(token, -1), &Selection::hoverChanged); }
    void setStep(int step) { set(step_, step, &Selection::stepChanged); }
    void setLayer(int layer) { set(layer_, layer, &Selection::depthChanged); }
    void setHead(int head) { set(head_, head, &Selection::depthChanged); }
    void setAttribution(ponderscope::Attribution attribution) {
        set(attribution_, attribution, &Selection::attributionChanged);
    }
    void setLook(const ponderscope::TextLook& look) { set(look_, look, &Selection::lookChanged); }

Q_SIGNALS:
    void runsChanged(); ///< run A or B
    void sequenceChanged(qint64 sequence);
    void tokenChanged(qint64 token);
    void hoverChanged(qint64 token);
    void stepChanged(int step);
    void depthChanged(); ///< layer or head
    void attributionChanged();
    void lookChanged();

private:
    template <class Value, class... Said>
    void set(Value& own, const Value& value, void (Selection::*changed)(Said...)) {
        if (own == value) {
            return;
        }
        own = value;
        if constexpr (sizeof...(Said) == 0) {
            Q_EMIT(this->*changed)();
        } else {
            Q_EMIT(this->*changed)(own);
        }
    }

    RunKey runA_;
    RunKey runB_;
    qint64 sequence_ = 0;
    qint64 token_ = -1;
    qint64 hover_ = -1;
    int step_ = -1;
    int layer_ = -1;
    int head_ = -1;
    Attribution attribution_ = Attribution::predicted;
    TextLook look_;
};

} // namespace ponderscope
