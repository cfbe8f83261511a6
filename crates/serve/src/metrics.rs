//! What the server counts about itself, as OpenMetrics text. No label holds anything that a caller
//! chose: routes are templates, never paths.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use glovebox_engine::PoolStats;
use glovebox_model::Sandbox;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::sandbox_metrics::SandboxMetrics;

/// From a millisecond to ten minutes.
const SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    180.0, 600.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExecLabels {
    status: String,
    backend: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    operation: String,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Seconds<RouteLabels>,
    execs: Family<ExecLabels, Counter>,
    exec_seconds: Histogram,
    queue_seconds: Histogram,
    store: Seconds<StoreLabels>,
    auth_failures: Counter,
    connections: Gauge,
    running: Gauge<u64, AtomicU64>,
    queued: Gauge<u64, AtomicU64>,
    limit: Gauge<u64, AtomicU64>,
    stock: SandboxMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("glovebox");
        let requests = Family::default();
        registry.register(
            "http_requests",
            "Requests by what they were answered",
            requests.clone(),
        );
        let latency: Seconds<_> = Family::new_with_constructor(seconds);
        let name = "http_request_duration";
        let help = "From the head of a request to the head of its answer";
        registry.register_with_unit(name, help, Unit::Seconds, latency.clone());
        let execs = Family::default();
        registry.register("execs", "Execs that ended", execs.clone());
        let exec_seconds = seconds();
        let help = "How long execs ran";
        registry.register_with_unit("exec_duration", help, Unit::Seconds, exec_seconds.clone());
        let queue_seconds = seconds();
        let help = "How long execs waited for their turn";
        registry.register_with_unit(
            "exec_queue_wait",
            help,
            Unit::Seconds,
            queue_seconds.clone(),
        );
        let store: Seconds<_> = Family::new_with_constructor(seconds);
        let help = "How long the engine and its store took to answer";
        registry.register_with_unit("store_duration", help, Unit::Seconds, store.clone());
        let auth_failures = Counter::default();
        let help = "Requests whose token was not accepted";
        registry.register("auth_failures", help, auth_failures.clone());
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let running = Gauge::default();
        registry.register("execs_running", "Execs that run now", running.clone());
        let queued = Gauge::default();
        registry.register(
            "execs_queued",
            "Execs that wait for their turn",
            queued.clone(),
        );
        let limit = Gauge::default();
        registry.register("execs_limit", "Execs that may run at once", limit.clone());
        let stock = SandboxMetrics::default();
        registry.register_collector(Box::new(stock.clone()));
        Self {
            registry,
            requests,
            latency,
            execs,
            exec_seconds,
            queue_seconds,
            store,
            auth_failures,
            connections,
            running,
            queued,
            limit,
            stock,
        }
    }

    pub(crate) fn request(&self, route: &str, method: &str, status: u16, took: Duration) {
        let (route, method) = (route.to_owned(), method.to_owned());
        self.requests
            .get_or_create(&RequestLabels {
                route: route.clone(),
                method: method.clone(),
                status,
            })
            .inc();
        self.latency
            .get_or_create(&RouteLabels { route, method })
            .observe(took.as_secs_f64());
    }

    pub(crate) fn exec_ended(
        &self,
        status: &str,
        backend: &str,
        ran: Option<Duration>,
        queued: Option<Duration>,
    ) {
        let labels = ExecLabels {
            status: status.to_owned(),
            backend: backend.to_owned(),
        };
        self.execs.get_or_create(&labels).inc();
        if let Some(ran) = ran {
            self.exec_seconds.observe(ran.as_secs_f64());
        }
        if let Some(queued) = queued {
            self.queue_seconds.observe(queued.as_secs_f64());
        }
    }

    pub(crate) fn store(&self, operation: &str, took: Duration) {
        let labels = StoreLabels {
            operation: operation.to_owned(),
        };
        self.store
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    pub(crate) fn auth_failed(&self) {
        self.auth_failures.inc();
    }

    /// Counted for as long as the answer is held.
    pub(crate) fn connection(self: &Arc<Self>) -> CountedConnection {
        self.connections.inc();
        CountedConnection(Arc::clone(self))
    }

    pub(crate) fn load(&self, running: u64, queued: u64, limit: u64) {
        self.running.set(running);
        self.queued.set(queued);
        self.limit.set(limit);
    }

    pub(crate) fn stock(&self, pool: &PoolStats, kept: &[Sandbox]) {
        self.stock.tell(pool, kept);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[derive(Debug)]
pub(crate) struct CountedConnection(Arc<Metrics>);

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told() {
        let metrics = Arc::new(Metrics::new());
        metrics.request("/v1/execs/{id}", "GET", 200, Duration::from_millis(3));
        metrics.exec_ended("succeeded", "native", Some(Duration::from_secs(2)), None);
        let held = metrics.connection();
        let text = metrics.text();
        for line in [
            "glovebox_http_requests_total{route=\"/v1/execs/{id}\",method=\"GET\",status=\"200\"} 1",
            "glovebox_http_request_duration_seconds_bucket{le=\"0.005\",route=\"/v1/execs/{id}\",method=\"GET\"} 1",
            "glovebox_execs_total{status=\"succeeded\",backend=\"native\"} 1",
            "glovebox_connections 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        drop(held);
        assert!(metrics.text().contains("glovebox_connections 0"));
    }
}
