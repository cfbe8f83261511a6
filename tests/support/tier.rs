//! Which tier of the tests this is.

/// Every row of a table, and every loop to its end: `scripts/test --full` sets `GLOVEBOX_TEST_FULL=1`.
pub fn is_full() -> bool {
    std::env::var_os("GLOVEBOX_TEST_FULL").is_some_and(|value| value == "1")
}
