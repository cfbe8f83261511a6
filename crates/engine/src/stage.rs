//! Where on the path a process stands. In debug builds a test can make it stop there for good, to
//! kill it at that very point; in release builds this is nothing.

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
