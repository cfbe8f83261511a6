//! Traces of the server by OTLP over HTTP: `OTEL_EXPORTER_OTLP_ENDPOINT` says where they go, and
//! without it none are made.

use std::sync::OnceLock;

use glovebox_model::{Code, Error, Result, Stage};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::registry::LookupSpan;

const VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sends what has not been sent yet.
pub(super) fn finish() {
    if let Some(provider) = PROVIDER.get() {
        // A collector that is gone is no reason to fail.
        let _ = provider.shutdown();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the operator's collector of traces"
)]
pub(super) fn layer<S>() -> Result<Option<impl Layer<S>>>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let wanted = |name: &&str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    if !VARIABLES.iter().any(wanted) {
        return Ok(None);
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .build()
        .map_err(|error| {
            let message = "traces cannot be sent to `OTEL_EXPORTER_OTLP_ENDPOINT`";
            Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
        })?;
    // From a thread of its own, in batches: a collector that is slow or gone holds nothing up.
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("glovebox").build())
        .build();
    let provider = PROVIDER.get_or_init(|| provider);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("glovebox"));
    Ok(Some(layer.with_filter(LevelFilter::INFO)))
}
