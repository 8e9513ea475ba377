//! Damage to a history: one schedule event deleted, or one of its compared fields changed.

use super::super::{
    api::{Event, EventKind},
    dice::Dice,
    journal::Call,
};

/// A text that no generated program uses.
const INTRUDER: &str = "intruder";

/// A history with one event deleted or changed.
#[derive(Debug, Clone)]
pub struct Spoiled {
    /// What was done, in words.
    pub what: String,
    /// The id of the event it was done to.
    pub event_id: u64,
    /// The spoiled history.
    pub history: Vec<Event>,
}

/// Deletes one schedule event; `None` if there is none. The ids of the others stay.
pub fn delete(history: &[Event], dice: &mut Dice) -> Option<Spoiled> {
    let mut history = history.to_vec();
    let index = pick(&history, dice, |_| true)?;
    let event = history.remove(index);
    Some(Spoiled { what: format!("deleted {:?}", event.kind), event_id: event.event_id, history })
}

/// Changes one compared field of one schedule event; `None` if there is none that has one.
pub fn change(history: &[Event], dice: &mut Dice) -> Option<Spoiled> {
    let mut history = history.to_vec();
    let index = pick(&history, dice, has_compared_field)?;
    let field = dice.below(4);
    let event = history.get_mut(index)?;
    let before = format!("{:?}", event.kind);
    change_field(&mut event.kind, field);
    let what = format!("changed {before} to {:?}", event.kind);
    Some(Spoiled { what, event_id: event.event_id, history })
}

fn pick(history: &[Event], dice: &mut Dice, is_meant: impl Fn(&EventKind) -> bool) -> Option<usize> {
    let indices: Vec<usize> = (0..history.len())
        .filter(|index| Call::recorded_in(&history[*index].kind).is_some() && is_meant(&history[*index].kind))
        .collect();
    dice.pick(&indices).copied()
}

fn has_compared_field(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::TimerCreated { .. } | EventKind::CustomStatusUpdated { .. } | EventKind::KeyValuesCleared
    )
}

fn change_field(kind: &mut EventKind, field: usize) {
    match kind {
        EventKind::ActivityScheduled { name, input, session_id, tag } => match field {
            0 => *input = INTRUDER.to_owned(),
            1 => toggle(session_id),
            2 => toggle(tag),
            _ => *name = INTRUDER.to_owned(),
        },
        EventKind::SubOrchestrationScheduled { name, input, .. } => {
            *(if field < 2 { name } else { input }) = INTRUDER.to_owned();
        }
        EventKind::OrchestrationChained { name, instance, input } => {
            let changed = match field {
                0 => name,
                1 => instance,
                _ => input,
            };
            *changed = INTRUDER.to_owned();
        }
        EventKind::KeyValueSet { key, value, .. } => {
            *(if field < 2 { key } else { value }) = INTRUDER.to_owned();
        }
        EventKind::ExternalSubscribed { name: text }
        | EventKind::QueueSubscribed { name: text }
        | EventKind::KeyValueCleared { key: text } => *text = INTRUDER.to_owned(),
        other => super::super::own::change_field(other, INTRUDER),
    }
}

fn toggle(field: &mut Option<String>) {
    *field = if field.is_some() { None } else { Some(INTRUDER.to_owned()) };
}
