//! Engine versions: what this build stamps on events, and which executions it may run.

use semver::Version;

/// The engine version that this build stamps on new events: the version of all crates of the workspace.
pub const BUILD_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the engine version of this build, parsed: the one that is stamped on events.
pub fn current_build_version() -> Version {
    match Version::parse(BUILD_VERSION) {
        Ok(version) => version,
        Err(error) => unreachable!("cargo builds only packages with a semantic version: {error}"),
    }
}

/// A range of versions, both ends included; it is empty if `min` is above `max`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemverRange {
    /// The lowest version that the range contains.
    pub min: Version,
    /// The highest version that the range contains.
    pub max: Version,
}

impl SemverRange {
    /// Builds the range from `min` to `max`, both included. The range is empty if `min` is above `max`.
    pub fn new(min: Version, max: Version) -> Self {
        Self { min, max }
    }

    /// Builds the range of every version up to that of this build.
    pub fn default_for_current_build() -> Self {
        Self::new(Version::new(0, 0, 0), current_build_version())
    }

    /// Tells whether a version lies in the range. Build metadata is ignored.
    pub fn contains(&self, version: &Version) -> bool {
        self.min.cmp_precedence(version).is_le() && version.cmp_precedence(&self.max).is_le()
    }
}

/// Selects the executions that a dispatcher can run, by the engine version that they are pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatcherCapabilityFilter {
    /// The supported ranges; an execution fits if one of them contains its version. An empty list fits no
    /// execution.
    pub supported_duroxide_versions: Vec<SemverRange>,
}

impl DispatcherCapabilityFilter {
    /// Builds the filter for every version up to that of this build.
    pub fn default_for_current_build() -> Self {
        Self { supported_duroxide_versions: vec![SemverRange::default_for_current_build()] }
    }

    /// Tells whether any range contains the version.
    pub fn is_compatible(&self, version: &Version) -> bool {
        self.supported_duroxide_versions.iter().any(|range| range.contains(version))
    }
}

/// Tells whether an event with this version stamp records every argument of its call. Engines before 0.2.0
/// left some arguments out and polled at other points, so their histories are compared less strictly.
pub(crate) fn records_everything(stamp: &str) -> bool {
    Version::parse(stamp).is_ok_and(|version| version >= Version::new(0, 2, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: u64, max: u64) -> SemverRange {
        SemverRange::new(Version::new(0, min, 0), Version::new(0, max, 0))
    }

    #[test]
    fn the_build_version_is_the_one_stamped_on_events() {
        assert_eq!(current_build_version().to_string(), BUILD_VERSION);
    }

    #[test]
    fn a_range_includes_both_ends() {
        assert!(range(1, 3).contains(&Version::new(0, 1, 0)));
        assert!(range(1, 3).contains(&Version::new(0, 3, 0)));
        assert!(!range(1, 3).contains(&Version::new(0, 0, 9)));
        assert!(!range(1, 3).contains(&Version::new(0, 3, 1)));
    }

    #[test]
    fn build_metadata_does_not_leave_a_range() {
        let rebuilt = Version::parse("0.3.0+local").unwrap();
        assert!(range(1, 3).contains(&rebuilt));
    }

    #[test]
    fn every_range_of_a_filter_counts() {
        let filter =
            DispatcherCapabilityFilter { supported_duroxide_versions: vec![range(1, 1), range(3, 3)] };
        assert!(filter.is_compatible(&Version::new(0, 1, 0)));
        assert!(!filter.is_compatible(&Version::new(0, 2, 0)));
        assert!(filter.is_compatible(&Version::new(0, 3, 0)));
    }

    #[test]
    fn by_default_a_build_runs_everything_up_to_itself() {
        let filter = DispatcherCapabilityFilter::default_for_current_build();
        assert!(filter.is_compatible(&Version::new(0, 0, 0)));
        assert!(filter.is_compatible(&Version::new(0, 1, 31)));
        assert!(filter.is_compatible(&current_build_version()));
        assert!(!filter.is_compatible(&Version::new(u64::MAX, 0, 0)));
    }
}
