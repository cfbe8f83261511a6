//! The values that make sense for each limit at all, whatever anybody allows. A value outside is
//! a mistake and is refused; it is never ignored, and never quietly brought into range.

use glovebox_model::{LimitField, PartialLimits};

/// Says what is wrong with one value.
pub(crate) fn check_amount(field: LimitField, raw: u64) -> Result<(), String> {
    let (least, most) = field.range();
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
            let (least, most) = field.range();
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
