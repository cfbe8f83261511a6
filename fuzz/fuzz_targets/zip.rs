#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = glovebox_fuzz::targets::zip::TARGET.answer(bytes);
});

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    glovebox_fuzz::replay(&glovebox_fuzz::targets::zip::TARGET)
}
