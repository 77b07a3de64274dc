//! Stable sorting of short lists, compiled once for all types.
//!
//! Every type and order that `slice::sort_by` is used with adds 4 KB to the program. Here the order is called through a
//! pointer and the list is moved twice, which does not matter for a list of servers or settings. Lists of tools and
//! search results use the standard library.

use std::cmp::Ordering;

/// Sorts like `slice::sort_by`.
pub fn by<T>(list: &mut Vec<T>, mut order: impl FnMut(&T, &T) -> Ordering) {
    let mut places: Vec<usize> = (0..list.len()).collect();
    sort(
        &mut places,
        &mut |left, right| match (list.get(left), list.get(right)) {
            (Some(left), Some(right)) => order(left, right),
            _ => Ordering::Equal,
        },
    );
    let mut unsorted: Vec<Option<T>> = list.drain(..).map(Some).collect();
    let sorted = places
        .into_iter()
        .filter_map(|place| unsorted.get_mut(place)?.take());
    list.extend(sorted);
}

/// Sorts like `slice::sort_by_key`.
pub fn by_key<T, K: Ord>(list: &mut Vec<T>, mut key: impl FnMut(&T) -> K) {
    by(list, |left, right| key(left).cmp(&key(right)));
}

fn sort(places: &mut [usize], order: &mut dyn FnMut(usize, usize) -> Ordering) {
    places.sort_by(|left, right| order(*left, *right));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(list in prop::collection::vec((0_u8..8, any::<u16>()), 0..100)) {
            let mut expected = list.clone();
            expected.sort_by_key(|(key, _)| *key);
            let mut sorted = list;
            super::by_key(&mut sorted, |(key, _)| *key);
            prop_assert_eq!(sorted, expected);
        }
    }
}
