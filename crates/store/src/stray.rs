//! Messages that nobody can be given: what every store says about them.

/// Tells that messages were dropped because there is no instance that they could go to (S17): a line in the log, and the
/// counter `steadfast_messages_dropped_total` with the reason `unknown`.
pub fn tell_of_strays(instance: &str, dropped: u64) {
    tracing::warn!(target: "steadfast::store", instance, dropped, "messages dropped: there is no such instance");
    metrics::counter!("steadfast_messages_dropped_total", "reason" => "unknown").increment(dropped);
}
