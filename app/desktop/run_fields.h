// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/checkpoint_inquiry.h"
#include "app/desktop/record_command.h"

#include <QObject>
#include <QWidget>

class QComboBox;
class QLineEdit;
class QSpinBox;
class QWidget;
class QToolButton;

namespace ponderscope {

class PathEdit;

/// The fields of RunSettings: steps, what later tokens see, start state. Fields that the model lacks are
/// disabled, with the reason; their values stay for the next model and are not part of settings(). The caller
/// lays out the widgets.
class RunFields : public QObject {
    Q_OBJECT
public:
    explicit RunFields(QWidget* parent);

    [[nodiscard]] QSpinBox& steps() { return *steps_; }
    [[nodiscard]] QComboBox& kv() { return *kv_; }
    [[nodiscard]] QWidget& start() { return *start_; }

    /// \p method: that of the run, when it is not the checkpoint's own; \p policy: of the run; the default of
    /// --kv depends on it. Of a checkpoint that is not known everything can be chosen.
    void setModel(const CheckpointAbout& about, const QString& method, const QString& policy);
    void setChosen(const RunSettings& settings);
    [[nodiscard]] const RunSettings& chosen() const { return chosen_; }
    /// The chosen settings that the model has.
    [[nodiscard]] RunSettings settings() const;
    [[nodiscard]] QString problem() const; ///< a sentence about what is not finished; empty when nothing is

Q_SIGNALS:
    void changed();

private:
    void show();
    void choose();

    QSpinBox* steps_;
    QComboBox* kv_;
    QWidget* start_;
    QComboBox* startKind_;
    QLineEdit* seed_;
    PathEdit* startFile_;
    RunSettings chosen_;
    bool ofFile_ = false; ///< the start state, though it may not be named yet
    // Why a choice is not available; empty: it is available.
    QString whyNoSteps_;
    QString whyNoKv_;
    QString whyNoStart_;
    QString ownSteps_; ///< the model's default
    QString ownKv_;
    bool showing_ = false;
};

/// A path that can be typed, chosen or dropped.
class PathEdit : public QWidget {
    Q_OBJECT
public:
    enum class Kind { folder, openFile, saveFile };
    PathEdit(Kind kind, const QString& what, const QString& filter, QWidget* parent = nullptr);
    [[nodiscard]] QString path() const;
    void setPath(const QString& path);
    /// Paths that are likely meant, in a list behind the field.
    void offer(const QStringList& paths);

Q_SIGNALS:
    void changed();

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void browse();

    Kind kind_;
    QString what_;
    QString filter_;
    QLineEdit* edit_;
    QToolButton* offered_; ///< hidden while there is no choice
};

/// The last parts of paths, as many as tell each from the others: "samples/adaponderlm".
QStringList distinct_names(const QStringList& paths);

} // namespace ponderscope
