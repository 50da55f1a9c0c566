// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/preview.h"
#include "views/figure/spec.h"

#include <QListWidget>

#include <vector>

namespace ponderscope {

/// Every kind of figure by name, with an example of it from the run at hand, made one after the other in the
/// background. A kind that this run has nothing for is grey, and its tooltip says why.
class FigureGallery : public QListWidget {
    Q_OBJECT
public:
    /// \p example: the figure that every example begins with.
    explicit FigureGallery(figure::FigureSpec example, QWidget* parent = nullptr);

    [[nodiscard]] figure::FigureKind kind() const;
    void setKind(figure::FigureKind kind);
    /// Why there is no figure of this kind; empty: there is one, or it was not tried yet.
    [[nodiscard]] QString reason(figure::FigureKind kind) const;
    /// Begins to make the examples. Not for traces of which one would take long.
    void makeExamples();
    [[nodiscard]] bool isBusy() const { return next_ > 0 && next_ <= count(); }

private:
    void makeNext();
    void finish(const QString& reason);

    figure::FigureSpec example_;
    figure::FigureMaker maker_;
    int next_ = 0; ///< the row that is being made, plus one; 0: none yet
};

} // namespace ponderscope
