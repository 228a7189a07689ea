//! What virtual disks may have, as a line says it: `sql01:scsi0:1: DiskLimitIOPerSecond 500`, by the names that
//! PowerCLI and the API have for it, behind the disks or the storage policy of which it is set.

use alloc::{format, vec, vec::Vec};
use core::{fmt, ops::RangeInclusive};

use crate::{
    Allocation, AllocationChange, Disks, Effect, Manual, Refusal,
    command::SETTERS,
    manual::range,
    names::{list, nearest, unknown},
};

/// The name that PowerCLI gives the IOPS limit of a disk.
pub const LIMIT: &str = "DiskLimitIOPerSecond";
/// That of its shares.
pub(crate) const SHARES: &str = "NumDiskShares";
/// PowerCLI has none for the reservation of a disk; that is its name in the API [API].
const RESERVATION: &str = "StorageIOAllocationReservation";
/// What a disk's storage policy is called, by the parameter that gives it one [SPBM].
pub(crate) const POLICY: &str = "StoragePolicy";
/// No storage policy.
pub const NO_POLICY: &str = "none";
/// What kavg calls the storage policy of which it sets what it says.
const OF_POLICY: &str = "storage policy ";
/// The form of a line that sets it.
pub(crate) const SAYS_POLICY: &str = "storage policy POLICY: DiskLimitIOPerSecond N";
/// No limit.
const NONE: &str = "-1";
/// What may be said of disks, and of a storage policy all but the last.
const CHANGES: [&str; 4] = [LIMIT, SHARES, RESERVATION, POLICY];

/// The forms of these lines.
pub(crate) fn forms() -> Vec<Manual> {
    let form = |line, what| Manual { line, effect: Some(Effect::AtOnce), what };
    vec![
        form(
            "VM: DiskLimitIOPerSecond N",
            format!(
                "`{LIMIT}`, the IOPS limit of each disk of a VM, or of one (`VM:scsi0:1: …`): {}, \
                 or {NONE} for none; also as `Set-VMResourceConfiguration` takes it [API]",
                range(Allocation::LIMITS)
            ),
        ),
        form(
            "VM: NumDiskShares N",
            format!(
                "the shares of each disk of a VM, or of one: {}; also as `Set-VMResourceConfiguration` \
                 takes it, after `-DiskSharesLevel Custom`, or by the levels {} [LAMW]",
                range(Allocation::SHARES),
                Allocation::SHARES_PRESETS.map(|(level, n)| format!("{level} ({n})")).join(", ")
            ),
        ),
        form(
            "VM: StorageIOAllocationReservation N",
            format!(
                "the reservation of each disk of a VM, or of one, in I/Os a second: 0 (none) to {}; \
                 the API sets it, PowerCLI does not [API]",
                Allocation::LIMITS.end()
            ),
        ),
        form(
            "VM: StoragePolicy POLICY",
            "the storage policy of each disk of a VM, or of one, which says all three, or `none`: then it has \
             none of the three; also as `Set-SpbmEntityConfiguration` takes it; from ESXi 6.5 on [SPBM, DOC65]"
                .into(),
        ),
        form(
            SAYS_POLICY,
            "what a storage policy says, of every disk that has it or is given it later: its limit, or as \
             above its shares and its reservation; the API sets it, PowerCLI does not [SPBM]"
                .into(),
        ),
    ]
}

/// What is wrong with a line that is none, where it is about disks or a storage policy and not for a host.
pub(crate) fn mistyped(line: &str) -> Option<Refusal> {
    let is_policy = behind(line, OF_POLICY).is_some();
    let (object, changes) =
        if is_policy { ("storage policy POLICY", &CHANGES[..3]) } else { ("VM", &CHANGES[..]) };
    let known = || changes.iter().copied();
    let is_for_host = |word: &str| {
        let commands = SETTERS.iter().filter_map(|setter| setter.words.split(' ').next());
        nearest(word, commands.chain(["esxcli"])).is_some()
    };
    let change = line.rsplit_once(": ").map(|(_, change)| change.split([' ', '=']).next());
    let what = match change.map(Option::unwrap_or_default) {
        Some(word) if is_policy || !is_for_host(word) => unknown("setting of disks", word, known()),
        Some(_) => return None,
        None => match line.split([' ', ':', '=']).find_map(|word| nearest(word, known())) {
            Some(change) => format!("`: ` is missing in front of {change}"),
            None if is_policy => format!("it says none of {}", list(known())),
            None => return None,
        },
    };
    Some(format!("{what}; a line is as `{object}: {LIMIT} 500`").into())
}

/// What stands behind a word, which is taken in any case.
fn behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

impl From<&str> for Disks {
    fn from(text: &str) -> Self {
        match behind(text, OF_POLICY) {
            Some(policy) => Self::With(unquoted(policy.trim()).into()),
            None => Self::Of(text.into()),
        }
    }
}

impl fmt::Display for Disks {
    /// As they stand in front of a change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(disk) => write!(f, "{disk}"),
            Self::With(policy) => write!(f, "{OF_POLICY}{policy}"),
        }
    }
}

impl fmt::Display for AllocationChange {
    /// What stands behind the disks of a line: its name and its value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(None) => write!(f, "{LIMIT} {NONE}"),
            Self::Limit(Some(limit)) => write!(f, "{LIMIT} {limit}"),
            Self::Shares(shares) => write!(f, "{SHARES} {shares}"),
            Self::Reservation(iops) => write!(f, "{RESERVATION} {iops}"),
            Self::Policy(policy) => {
                write!(f, "{POLICY} {}", policy.as_deref().unwrap_or(NO_POLICY))
            }
        }
    }
}

impl AllocationChange {
    /// Reads what stands behind the disks of a line; `None` where it begins with no name of a change.
    pub(crate) fn read(text: &str) -> Option<Result<Self, Refusal>> {
        let value = |name: &str| Some(behind(text, name)?.trim_start_matches(['=', ' ']).trim());
        if let Some(value) = value(LIMIT) {
            return Some(Self::limit(value));
        }
        if let Some(value) = value(SHARES) {
            return Some(Self::shares(value));
        }
        if let Some(policy) = value(POLICY) {
            return Some(match unquoted(policy) {
                "" => Err(format!("`{text}` names no storage policy").into()),
                none if none.eq_ignore_ascii_case(NO_POLICY) => Ok(Self::Policy(None)),
                policy => Ok(Self::Policy(Some(policy.into()))),
            });
        }
        let value = value(RESERVATION)?;
        let most = Allocation::LIMITS.end();
        let what = format!("reservation; it is 0 to {most} I/Os a second");
        Some(number(value, 0..=*most, &what).map(Self::Reservation))
    }

    /// Reads a limit.
    pub(crate) fn limit(value: &str) -> Result<Self, Refusal> {
        let most = Allocation::LIMITS.end();
        let what = format!("limit; it is {NONE} (none) or 1 to {most} I/Os a second");
        let limit = || number(value, Allocation::LIMITS, &what).map(Some);
        if value == NONE { Ok(None) } else { limit() }.map(Self::Limit)
    }

    /// Reads a number of shares.
    pub(crate) fn shares(value: &str) -> Result<Self, Refusal> {
        let (least, most) = Allocation::SHARES.into_inner();
        let what = format!("number of shares; it is {least} to {most}");
        number(value, Allocation::SHARES, &what).map(Self::Shares)
    }
}

/// A name without the quotes that it may stand in.
fn unquoted(name: &str) -> &str {
    let within = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"')).unwrap_or(name)
}

fn number(value: &str, range: RangeInclusive<u32>, what: &str) -> Result<u32, Refusal> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("`{value}` is no {what}").into())
}
