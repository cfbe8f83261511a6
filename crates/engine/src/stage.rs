//! Where on the path a process stands: for traces, and in debug builds for tests, which can make it
//! stop there for good, to kill it at that very point.

/// The time that a stage takes, as traces show it.
pub(crate) fn span(stage: &'static str) -> tracing::Span {
    tracing::info_span!("stage", otel.name = stage, stage)
}

/// `GLOVEBOX_PAUSE_AT=STAGE:FILE` makes FILE and then waits until it is killed.
#[cfg(debug_assertions)]
pub(crate) fn reached(stage: &str) {
    let Ok(wish) = std::env::var("GLOVEBOX_PAUSE_AT") else {
        return;
    };
    let Some((wanted, file)) = wish.split_once(':') else {
        return;
    };
    if wanted == stage && std::fs::write(file, "").is_ok() {
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: &str) {}
