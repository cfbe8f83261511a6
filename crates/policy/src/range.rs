//! The values that make sense for each limit at all, whatever anybody allows. A value outside is
//! a mistake and is refused; it is never ignored, and never quietly brought into range.

use glovebox_model::PartialLimits;

use crate::field::LimitField;

/// | limit | least | why | most | why |
/// |---|---|---|---|---|
/// | timeout | 1 ms | zero would end everything | 30 d | longer work belongs in a session |
/// | cpu_time | 1 ms | as above | 30 d × 1024 cpus | as above, on every processor |
/// | memory | 8 MiB | below it the loader is killed and the sandbox looks broken | 64 TiB | beyond any host |
/// | pids | 1 | the program itself | 4 194 304 | the kernel's largest pid |
/// | cpus | 0.1 | below it even start-up crawls past time-outs | 1024 | beyond any host |
/// | disk | 64 KiB | a size of zero means «no limit» to tmpfs | 1 PiB | beyond any host |
/// | files | 16 | zero means «no limit» to tmpfs; directories count too | 2³² | beyond any filesystem |
/// | stdout, stderr | 1 B | an empty stream cannot say that it was cut | 64 GiB | they are kept on disk |
/// | artifacts | 0 | «keep none» is a sensible wish | 1 PiB | beyond any host |
/// | open_files | 16 | stdio, the loader and an interpreter's first files | 1 048 576 | the kernel's default most |
/// | gpus, tpus | 0 | most programs need none | 1024 | beyond any host |
/// | egress_bytes, egress_connections | 1 | to have none is `network = "none"` | 1 PiB, 2³² | beyond any line |
/// | network_time | 1 ms | as above | 24 h | a way out is granted for a day at most |
const fn range(field: LimitField) -> (u64, u64) {
    const DAY_MS: u64 = 86_400_000;
    match field {
        LimitField::Wall => (1, 30 * DAY_MS),
        LimitField::CpuTime => (1, 30 * DAY_MS * 1024),
        LimitField::Memory => (8 << 20, 64 << 40),
        LimitField::Pids => (1, 4_194_304),
        LimitField::Cpus => (100, 1_024_000),
        LimitField::Disk => (64 << 10, 1 << 50),
        LimitField::Files => (16, 1 << 32),
        LimitField::Stdout | LimitField::Stderr => (1, 64 << 30),
        LimitField::Artifacts => (0, 1 << 50),
        LimitField::OpenFiles => (16, 1_048_576),
        LimitField::Gpus | LimitField::Tpus => (0, 1024),
        LimitField::EgressBytes => (1, 1 << 50),
        LimitField::EgressConnections => (1, 1 << 32),
        LimitField::NetworkTime => (1, DAY_MS),
    }
}

impl LimitField {
    /// The least and the most that make sense at all.
    pub const fn range(self) -> (u64, u64) {
        range(self)
    }
}

/// Says what is wrong with one value.
pub(crate) fn check_amount(field: LimitField, raw: u64) -> Result<(), String> {
    let (least, most) = range(field);
    let (key, shown) = (field.key(), field.show(raw));
    if raw < least {
        return Err(format!(
            "`{key}` `{shown}` is below `{}`, the least that works",
            field.show(least)
        ));
    }
    if raw > most {
        return Err(format!(
            "`{key}` `{shown}` is above `{}`, the most that makes sense",
            field.show(most)
        ));
    }
    Ok(())
}

/// The first limit that is out of range, and what is wrong with it.
pub(crate) fn check_limits(limits: &PartialLimits) -> Result<(), (LimitField, String)> {
    for field in LimitField::ALL {
        if let Some(raw) = field.opinion(limits) {
            check_amount(field, raw).map_err(|why| (field, why))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_are_allowed_and_one_step_beyond_is_not() {
        for field in LimitField::ALL {
            let (least, most) = range(field);
            assert_eq!(check_amount(field, least), Ok(()));
            assert_eq!(check_amount(field, most), Ok(()));
            assert!(check_amount(field, most + 1).is_err());
            if let Some(below) = least.checked_sub(1) {
                assert!(check_amount(field, below).is_err());
            }
        }
    }

    #[test]
    fn the_message_names_field_value_and_edge() {
        assert_eq!(
            check_amount(LimitField::Memory, 4096).unwrap_err(),
            "`memory` `4K` is below `8M`, the least that works"
        );
        assert_eq!(
            check_amount(LimitField::Cpus, 2_000_000).unwrap_err(),
            "`cpus` `2000` is above `1024`, the most that makes sense"
        );
    }
}
