// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/figure/figure.h"
#include "views/figure/vision.h"

#include <QObject>
#include <QWidget>

#include <memory>
#include <optional>

namespace ponderscope::figure {

/// Reads a specification's data on another thread and creates the layout on the GUI thread. A new request
/// replaces the one in progress. Ends with `ready` or `failed`.
class FigureMaker : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;
    void make(const FigureSpec& spec);
    [[nodiscard]] bool isBusy() const { return reading_.isBusy(); }
    [[nodiscard]] const Figure* figure() const {
        return figure_.get();
    } ///< the last figure; null after a failure
    [[nodiscard]] const Fonts* fonts() const { return fonts_.get(); }

Q_SIGNALS:
    void ready();
    void failed(const QString& sentence);

private:
    void arrived(const FigureSpec& spec, const std::shared_ptr<const FigureData>& data);
    void refuse(const QString& sentence);

    Task reading_{this};
    std::unique_ptr<Fonts> fonts_;
    std::unique_ptr<Figure> figure_;
    std::shared_ptr<const FigureData> data_; ///< data of the last figure; a change of its look reads no trace
    std::optional<FigureSpec> dataOf_;
};

/// A figure on paper, at its printed size.
class FigurePreview : public QWidget {
    Q_OBJECT
public:
    explicit FigurePreview(QWidget* parent = nullptr);
    /// \p figure and \p fonts must stay alive until the next call; null: shows nothing.
    void setFigure(const Figure* figure, const Fonts* fonts);
    /// Sets the available width in pixels. A wider page is shown smaller than true size, with a note.
    void setRoom(int pixels);
    /// Shows the figure in grey, or as seen without green cones.
    void setVision(Vision vision);
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Vision vision_ = Vision::normal;
    int room_ = 0; ///< 0: unlimited
    [[nodiscard]] double zoom() const;
    [[nodiscard]] double pixelsPerPoint() const;
    const Figure* figure_ = nullptr;
    const Fonts* fonts_ = nullptr;
};

} // namespace ponderscope::figure
