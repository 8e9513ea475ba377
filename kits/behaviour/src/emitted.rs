//! Metrics of the tasks on the test's own thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, LocalRecorderGuard, Metadata,
    Recorder, SharedString, Unit,
};

/// Collects metrics. Clones share one collection.
///
/// A series is named by its metric and its labels: `name{label=value,other=value}`, the labels sorted.
#[derive(Debug, Clone, Default)]
pub struct Emitted(Arc<Mutex<Collected>>);

#[derive(Debug, Default)]
struct Collected {
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    histograms: BTreeMap<String, Vec<f64>>,
    described: BTreeMap<String, &'static str>,
}

impl Emitted {
    /// Begins to collect what the current thread emits, until the guard is dropped.
    pub fn listen(&self) -> LocalRecorderGuard<'_> {
        metrics::set_default_local_recorder(self)
    }

    /// Returns the counters whose name begins with a text, by series.
    pub fn counters(&self, prefix: &str) -> BTreeMap<String, u64> {
        let state = self.lock();
        let wanted = state.counters.iter().filter(|(series, _)| series.starts_with(prefix));
        wanted.map(|(series, value)| (series.clone(), *value)).collect()
    }

    /// Returns a counter, 0 when it was never counted.
    pub fn counter(&self, series: &str) -> u64 {
        self.lock().counters.get(series).copied().unwrap_or(0)
    }

    /// Returns a gauge, if it was ever set.
    pub fn gauge(&self, series: &str) -> Option<f64> {
        self.lock().gauges.get(series).copied()
    }

    /// Returns what a histogram was told, in order.
    pub fn histogram(&self, series: &str) -> Vec<f64> {
        self.lock().histograms.get(series).cloned().unwrap_or_default()
    }

    /// Returns every series that was emitted.
    pub fn series(&self) -> Vec<String> {
        let state = self.lock();
        let names = state.counters.keys().chain(state.gauges.keys()).chain(state.histograms.keys());
        names.cloned().collect()
    }

    /// Returns the described metrics, each with its kind: `counter`, `gauge` or `histogram`.
    pub fn described(&self) -> BTreeMap<String, &'static str> {
        self.lock().described.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, name: &KeyName, kind: &'static str) {
        self.lock().described.insert(name.as_str().to_owned(), kind);
    }

    fn series_of(&self, key: &Key) -> Arc<Series> {
        let mut labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        Arc::new(Series { name: format!("{}{labels}", key.name()), emitted: self.clone() })
    }
}

impl Recorder for Emitted {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&key, "counter");
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&key, "gauge");
    }

    fn describe_histogram(&self, key: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&key, "histogram");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series_of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series_of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series_of(key))
    }
}

struct Series {
    name: String,
    emitted: Emitted,
}

impl Series {
    fn gauge(&self, change: impl FnOnce(&mut f64)) {
        change(self.emitted.lock().gauges.entry(self.name.clone()).or_default());
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        *self.emitted.lock().counters.entry(self.name.clone()).or_default() += value;
    }

    fn absolute(&self, value: u64) {
        self.emitted.lock().counters.insert(self.name.clone(), value);
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.gauge(|gauge| *gauge += value);
    }

    fn decrement(&self, value: f64) {
        self.gauge(|gauge| *gauge -= value);
    }

    fn set(&self, value: f64) {
        self.gauge(|gauge| *gauge = value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        self.emitted.lock().histograms.entry(self.name.clone()).or_default().push(value);
    }
}
