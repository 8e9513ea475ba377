//! Messages to an instance that does not exist: what every store logs and counts when it drops them.

/// Tells that messages were dropped because the instance that they were sent to does not exist (S17): writes
/// a line to the log and adds to the counter `steadfast_messages_dropped_total` with the reason `unknown`.
pub fn tell_of_strays(instance: &str, dropped: u64) {
    tracing::warn!(
        target: "steadfast::store",
        instance,
        dropped,
        "messages dropped: there is no such instance"
    );
    metrics::counter!("steadfast_messages_dropped_total", "reason" => "unknown").increment(dropped);
}

/// Tells that starts or answers of children were dropped because they belong to a former instance of their
/// parent's id (S17): writes a line to the log and adds to the counter
/// `steadfast_messages_dropped_total` with the reason `former`.
pub fn tell_of_former_lives(instance: &str, dropped: u64) {
    tracing::warn!(
        target: "steadfast::store",
        instance,
        dropped,
        "messages dropped: they belong to a parent that was deleted"
    );
    metrics::counter!("steadfast_messages_dropped_total", "reason" => "former").increment(dropped);
}
