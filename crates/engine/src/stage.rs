//! Where on the path a process stands: for traces, and in debug builds for tests, which can make it
//! stop there, to kill it at that very point or to look at what others see meanwhile.

/// The time that a stage takes, as traces show it.
pub(crate) fn span(stage: &'static str) -> tracing::Span {
    tracing::info_span!("stage", otel.name = stage, stage)
}

#[cfg(debug_assertions)]
static PASSED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// `GLOVEBOX_PAUSE_AT=STAGE:FILE` makes FILE and waits until it is killed, or until there is
/// `FILE.go`. `STAGE#N` lets the first N pass.
#[cfg(debug_assertions)]
pub(crate) fn reached(stage: &str) {
    let Ok(wish) = std::env::var("GLOVEBOX_PAUSE_AT") else {
        return;
    };
    let Some((wanted, file)) = wish.split_once(':') else {
        return;
    };
    let (wanted, passing) = wanted.split_once('#').unwrap_or((wanted, "0"));
    if wanted != stage
        || PASSED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < passing.parse().unwrap_or(0)
    {
        return;
    }
    if std::fs::write(file, "").is_ok() {
        let go = format!("{file}.go");
        while !std::fs::exists(&go).unwrap_or(false) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: &str) {}
