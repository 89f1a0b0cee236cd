//! Finds devices for claims on a node.
//!
//! Claim after claim, request after request and device after device the first one is taken that is
//! free and selected; if what comes after finds none then, the next one is tried. So what can be
//! found is found, and the first that is found is taken. What plainly cannot be had is not tried, and
//! what takes too long is given up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceClass, DeviceSelector, ResourceClaim,
};
use steersman::ObjectKey;

use super::candidate::{Candidate, Taken, candidates};
use super::capacity::{has_room, portion};
use super::constraint::Constraint;
use super::counters::Counters;
use super::deadline::Deadline;
use super::pools::{Pool, PoolState, Slices, is_for};
use super::request::{Mode, Request, requests};
use super::result;
use super::taints::is_barred;
use crate::framework::Lister;
use crate::plugins::allocations::Taken as Devices;
use crate::plugins::consumed::Consumed;
use crate::plugins::device_selectors::{Selectors, is_true};

/// So many devices a claim can have.
pub(super) const RESULTS_MAX: usize = 32;

/// What devices there are, and which are taken, as one attempt sees them.
pub(super) struct Allocator {
    pub(super) slices: Slices,
    /// Those that others have.
    pub(super) taken: Devices,
    pub(super) lister: Arc<dyn Lister>,
    pub(super) selectors: Arc<Selectors>,
    /// How long it may take on a node, if not as long as it takes.
    pub(super) timeout: Option<Duration>,
}

/// Why devices cannot be looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// On this node; on others they may be found.
    OnNode(&'static str),
    /// On any node: a claim, a class or a slice is at fault.
    Everywhere(String),
    /// It takes too long.
    TooLate,
}

/// What is looked for: for a claim, each request with its alternatives.
struct Wanted<'c> {
    claim: &'c ResourceClaim,
    requests: Vec<Vec<Request<'c>>>,
    constraints: Vec<Constraint<'c>>,
}

/// Where in the search we are.
#[derive(Clone, Copy, Default)]
struct Place {
    claim: usize,
    request: usize,
    /// The alternative that was settled upon.
    alternative: Option<usize>,
    device: usize,
    /// The first candidate to look at: the devices of one request are taken in their order, so that
    /// none is taken twice for it, and no choice is tried in every order.
    from: usize,
}

/// Why a search ends without an answer.
enum Stop {
    /// A claim would get more devices than it can have.
    TooMany,
    TooLate,
    Failed(String),
}

struct Search<'a, 'c> {
    allocator: &'a Allocator,
    node: &'a Node,
    pools: &'a [Pool<'a>],
    candidates: &'a [Candidate<'a>],
    wanted: Vec<Wanted<'c>>,
    /// For which claims a candidate has been taken.
    taking: HashMap<usize, Vec<usize>>,
    /// What shares of a candidate have been taken.
    sharing: HashMap<usize, Vec<Consumed>>,
    /// By claim.
    taken: Vec<Vec<Taken>>,
    counters: Counters,
    /// Whether a candidate is selected by an alternative of a request of a claim.
    selected: HashMap<(usize, usize, usize, usize), bool>,
    deadline: Deadline,
}

impl Allocator {
    /// What to allocate for claims if their Pod runs on a node; none if that cannot be.
    pub(super) fn allocate(
        &self,
        node: &Node,
        claims: &[&ResourceClaim],
    ) -> Result<Option<Vec<AllocationResult>>, Problem> {
        let pools = self.slices.pools(node);
        let candidates = candidates(&pools, &self.taken);
        let mut search = Search {
            allocator: self,
            node,
            pools: &pools,
            candidates: &candidates,
            wanted: Vec::new(),
            taking: HashMap::new(),
            sharing: HashMap::new(),
            taken: vec![Vec::new(); claims.len()],
            counters: Counters::of(&pools, |device| !self.taken.of(device).is_free()),
            selected: HashMap::new(),
            deadline: Deadline::after(self.timeout),
        };
        for claim in claims {
            search.prepare(claim).map_err(Problem::Everywhere)?;
        }
        let found = match search.is_hopeless() {
            Ok(true) => Ok(false),
            // What is wrong with an expression is told by the search, if it comes to that.
            Ok(false) | Err(_) => search.next(Place::default()),
        };
        match found {
            Ok(true) => {}
            Err(Stop::Failed(why)) => return Err(Problem::Everywhere(why)),
            Err(Stop::TooLate) => return Err(Problem::TooLate),
            Ok(false) | Err(Stop::TooMany) => {
                let is_invalid = pools.iter().any(|pool| pool.state == PoolState::Invalid);
                return match is_invalid {
                    true => Err(Problem::OnNode("invalid resource pools were encountered")),
                    false => Ok(None),
                };
            }
        }
        let results = search.wanted.iter().zip(&search.taken).map(|(wanted, taken)| {
            let found = result::Found { node, pools: &pools, candidates: &candidates, taken };
            found.result(wanted.claim, &wanted.requests)
        });
        results.collect::<Result<Vec<_>, _>>().map(Some).map_err(Problem::Everywhere)
    }
}

impl<'c> Search<'_, 'c> {
    /// Looks at what a claim asks for.
    fn prepare(&mut self, claim: &'c ResourceClaim) -> Result<(), String> {
        let key = ObjectKey::of(claim);
        let place = self.wanted.len();
        let mut all = Vec::new();
        let mut least = 0;
        for (number, alternatives) in requests(claim).into_iter().enumerate() {
            let mut found = Vec::new();
            for (alternative, asked) in alternatives.into_iter().enumerate() {
                let name = asked.name();
                let class =
                    self.allocator.lister.device_class(asked.class_name).ok_or_else(|| {
                        let class = asked.class_name;
                        format!(
                            "claim {key}, request {name}: could not retrieve device class {class}: \
                         deviceclass.resource.k8s.io {class:?} not found"
                        )
                    })?;
                let mut request = asked.of(class);
                if request.mode == Mode::All {
                    let at = (place, number, alternative);
                    request.all = self.all(&request, claim, at)?;
                }
                found.push(request);
            }
            least += found.iter().map(Request::count).min().unwrap_or_default();
            all.push(found);
        }
        if least > RESULTS_MAX {
            return Err(format!(
                "claim {key}: number of requested devices {least} exceeds the claim limit of \
                 {RESULTS_MAX}"
            ));
        }
        let mut constraints = Vec::new();
        for (number, constraint) in
            claim.spec.devices.iter().flat_map(|it| it.constraints.iter().flatten()).enumerate()
        {
            constraints.push(Constraint::of(constraint).ok_or_else(|| {
                format!("claim {key}, constraint #{number}: empty constraint (unsupported constraint type?)")
            })?);
        }
        self.wanted.push(Wanted { claim, requests: all, constraints });
        Ok(())
    }

    /// All devices that a request selects.
    fn all(
        &mut self,
        request: &Request<'c>,
        claim: &ResourceClaim,
        at: (usize, usize, usize),
    ) -> Result<Vec<usize>, String> {
        let key = ObjectKey::of(claim);
        let name = request.name;
        for pool in self.pools {
            let state = match pool.state {
                PoolState::Usable => continue,
                PoolState::Incomplete => "currently being updated",
                PoolState::Invalid => "currently invalid",
            };
            let pool = format!("{}/{}", pool.driver, pool.name);
            return Err(format!(
                "claim {key}, request {name}: asks for all devices, but resource pool {pool} is {state}"
            ));
        }
        let mut all = Vec::new();
        for place in 0..self.candidates.len() {
            if self.is_selected(place, request, claim, at)?
                && self.portion(place, request).is_some()
            {
                all.push(place);
            }
        }
        Ok(all)
    }

    /// Whether a request wants more than there is for it, whatever the others get.
    fn is_hopeless(&mut self) -> Result<bool, String> {
        for claim in 0..self.wanted.len() {
            for request in 0..self.wanted[claim].requests.len() {
                let at = Place { claim, request, ..Place::default() };
                let mut is_possible = false;
                for alternative in 0..self.wanted[claim].requests[request].len() {
                    is_possible = is_possible || self.has_candidates(at, alternative)?;
                }
                if !is_possible {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether there are as many candidates for a request as it wants.
    fn has_candidates(&mut self, at: Place, alternative: usize) -> Result<bool, String> {
        let request = self.wanted[at.claim].requests[at.request][alternative].clone();
        let claim = self.wanted[at.claim].claim;
        let key = (at.claim, at.request, alternative);
        let mut missing = match request.mode {
            Mode::Exactly(count) => count,
            Mode::All => 0, // those have been looked for
        };
        for place in 0..self.candidates.len() {
            if missing == 0 {
                break;
            }
            if self.is_open(place, at, alternative)
                && self.is_selected(place, &request, claim, key)?
                && self.may_be_had(place, at, alternative)
            {
                missing -= 1;
            }
        }
        Ok(missing == 0)
    }

    /// Takes what is still to be taken from a place of the search on. Whether that worked out.
    fn next(&mut self, at: Place) -> Result<bool, Stop> {
        if self.deadline.is_over() {
            return Err(Stop::TooLate);
        }
        if at.claim >= self.wanted.len() {
            return Ok(true);
        }
        if at.request >= self.wanted[at.claim].requests.len() {
            return match self.next(Place { claim: at.claim + 1, ..Place::default() }) {
                // With fewer devices for the claims before it may work out.
                Err(Stop::TooMany) => Ok(false),
                found => found,
            };
        }
        match at.alternative {
            None => self.first_available(at),
            Some(alternative) => self.devices(at, alternative),
        }
    }

    /// The first alternative of a request that works out.
    fn first_available(&mut self, at: Place) -> Result<bool, Stop> {
        let count = self.wanted[at.claim].requests[at.request].len();
        let mut all_too_many = true;
        for alternative in 0..count {
            match self.next(Place { alternative: Some(alternative), ..at }) {
                Err(Stop::TooMany) => {}
                Ok(false) => all_too_many = false,
                found => return found,
            }
        }
        if all_too_many { Err(Stop::TooMany) } else { Ok(false) }
    }

    fn devices(&mut self, at: Place, alternative: usize) -> Result<bool, Stop> {
        let request = &self.wanted[at.claim].requests[at.request][alternative];
        let (mode, count) = (request.mode, request.count());
        if mode == Mode::All && count == 0 {
            return Ok(false);
        }
        if at.device >= count {
            return self.next(Place {
                claim: at.claim,
                request: at.request + 1,
                ..Place::default()
            });
        }
        if self.taken[at.claim].len() + count - at.device > RESULTS_MAX {
            return Err(Stop::TooMany);
        }
        if mode == Mode::All {
            let place = request.all[at.device];
            return self.one(at, alternative, place, true);
        }
        self.some(at, alternative, count - at.device)
    }

    /// The first candidates, as many as are still needed, with which what comes after works out.
    fn some(&mut self, at: Place, alternative: usize, needed: usize) -> Result<bool, Stop> {
        let request = self.wanted[at.claim].requests[at.request][alternative].clone();
        let claim = self.wanted[at.claim].claim;
        let key = (at.claim, at.request, alternative);
        for place in at.from..self.candidates.len() {
            if !self.is_open(place, at, alternative) {
                continue;
            }
            let is_selected = self.is_selected(place, &request, claim, key);
            if !is_selected.map_err(Stop::Failed)? {
                continue;
            }
            // Where there are too few, the rest is only looked at for what is wrong with it.
            if self.are_enough(place, at, alternative, needed)
                && self.one(at, alternative, place, false)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether so many candidates may be had from a place on, as far as is known.
    fn are_enough(&self, from: usize, at: Place, alternative: usize, needed: usize) -> bool {
        let rest = from..self.candidates.len();
        let may_be_had = |place: &usize| self.may_be_had(*place, at, alternative);
        needed == 1 || rest.filter(may_be_had).take(needed).count() == needed
    }

    /// Whether a request may have a candidate, unless that is known to be against its selectors or
    /// taints.
    fn may_be_had(&self, place: usize, at: Place, alternative: usize) -> bool {
        let key = (place, at.claim, at.request, alternative);
        let request = &self.wanted[at.claim].requests[at.request][alternative];
        self.selected.get(&key) != Some(&false)
            && self.is_open(place, at, alternative)
            && !is_barred(self.candidates[place].device, request.tolerations)
    }

    /// Whether a candidate is there for a request.
    fn is_open(&self, place: usize, at: Place, alternative: usize) -> bool {
        self.pools[self.candidates[place].pool].state == PoolState::Usable
            && !self.is_in_use(place, at, alternative)
    }

    /// Takes a device, if it can be had, and what comes after it; otherwise gives it back.
    fn one(
        &mut self,
        at: Place,
        alternative: usize,
        place: usize,
        must: bool,
    ) -> Result<bool, Stop> {
        if !self.take(at, alternative, place, must)? {
            return Ok(false);
        }
        let found = self.next(Place { device: at.device + 1, from: place + 1, ..at });
        if !matches!(found, Ok(true)) {
            self.give_back(at, alternative, place);
        }
        found
    }

    fn is_in_use(&self, place: usize, at: Place, alternative: usize) -> bool {
        let taking = self.taking.get(&place);
        match self.wanted[at.claim].requests[at.request][alternative].is_admin {
            true => taking.is_some_and(|claims| claims.contains(&at.claim)),
            false => {
                let held = &self.candidates[place].held;
                held.is_whole() || taking.is_some_and(|claims| !claims.is_empty())
            }
        }
    }

    /// What a request takes of the capacities of a candidate, if there is as much left.
    fn portion(&self, place: usize, request: &Request<'_>) -> Option<Consumed> {
        let candidate = &self.candidates[place];
        let Candidate { device, held, .. } = candidate;
        if request.capacity.is_none() && held.is_free() && !candidate.can_be_shared() {
            return Some(Consumed::default()); // all of it is there
        }
        let portion = portion(device, request.capacity)?;
        let others = self.sharing.get(&place).map_or(&[][..], Vec::as_slice);
        has_room(device, held.consumed(), others, &portion).then_some(portion)
    }

    /// Whether somebody has a share of a candidate, or will.
    fn is_shared(&self, place: usize) -> bool {
        let sharing = self.sharing.get(&place);
        self.candidates[place].held.is_shared() || sharing.is_some_and(|all| !all.is_empty())
    }

    fn take(
        &mut self,
        at: Place,
        alternative: usize,
        place: usize,
        must: bool,
    ) -> Result<bool, Stop> {
        if self.is_in_use(place, at, alternative) {
            return Ok(false);
        }
        let candidate = &self.candidates[place];
        let (pool, device) = (candidate.pool, candidate.device);
        let request = &self.wanted[at.claim].requests[at.request][alternative];
        if is_barred(device, request.tolerations) {
            return Ok(false);
        }
        let Some(portion) = self.portion(place, request) else { return Ok(false) };
        let has_counters = !(candidate.can_be_shared() && self.is_shared(place));
        if has_counters && !self.counters.take(pool, device) {
            return Ok(false);
        }
        let wanted = &mut self.wanted[at.claim];
        let request = &wanted.requests[at.request][alternative];
        let (of, driver) = (request.of_constraint(), self.pools[pool].driver);
        for number in 0..wanted.constraints.len() {
            if wanted.constraints[number].add(of, driver, device) {
                continue;
            }
            wanted.constraints[..number].iter_mut().rev().for_each(|it| it.remove(of));
            if has_counters {
                self.counters.give_back(pool, device);
            }
            if must {
                let (key, name) = (ObjectKey::of(wanted.claim), request.name);
                let id = format!("{driver}/{}/{}", self.pools[pool].name, device.name);
                return Err(Stop::Failed(format!(
                    "claim {key}, request {name}: cannot add device {id} because a claim constraint \
                     would not be satisfied"
                )));
            }
            return Ok(false);
        }
        let share = candidate.can_be_shared().then_some(portion);
        match &share {
            Some(portion) => self.sharing.entry(place).or_default().push(portion.clone()),
            None => self.taking.entry(place).or_default().push(at.claim),
        }
        let request = at.request;
        let taken = Taken { candidate: place, request, alternative, share, has_counters };
        self.taken[at.claim].push(taken);
        Ok(true)
    }

    fn give_back(&mut self, at: Place, alternative: usize, place: usize) {
        let Some(taken) = self.taken[at.claim].pop() else { return };
        if taken.share.is_none() {
            self.taking.entry(place).or_default().pop();
        } else {
            self.sharing.entry(place).or_default().pop();
        }
        let wanted = &mut self.wanted[at.claim];
        let of = wanted.requests[at.request][alternative].of_constraint();
        wanted.constraints.iter_mut().rev().for_each(|it| it.remove(of));
        if taken.has_counters {
            let Candidate { pool, device, .. } = &self.candidates[place];
            self.counters.give_back(*pool, device);
        }
    }

    /// Whether a device is one of those that a request and its class select.
    fn is_selected(
        &mut self,
        place: usize,
        request: &Request<'c>,
        claim: &ResourceClaim,
        (of_claim, number, alternative): (usize, usize, usize),
    ) -> Result<bool, String> {
        let key = (place, of_claim, number, alternative);
        if let Some(known) = self.selected.get(&key) {
            return Ok(*known);
        }
        let candidate = &self.candidates[place];
        let asks_devices = candidate.slice.spec.per_device_node_selection == Some(true);
        let class: &DeviceClass = &request.class;
        let by_class = || format!("class {}", class.metadata.name.as_deref().unwrap_or_default());
        let by_claim = || format!("claim {}", ObjectKey::of(claim));
        let selected = self.select(candidate, class.spec.selectors.as_deref(), by_class)?
            && self.select(candidate, Some(request.selectors), by_claim)?
            && (!asks_devices || is_for(candidate.device, self.node));
        self.selected.insert(key, selected);
        Ok(selected)
    }

    fn select(
        &self,
        candidate: &Candidate<'_>,
        selectors: Option<&[DeviceSelector]>,
        by: impl Fn() -> String,
    ) -> Result<bool, String> {
        let driver = self.pools[candidate.pool].driver;
        for (number, selector) in selectors.unwrap_or_default().iter().enumerate() {
            let expression = selector.cel.as_ref().map_or("", |cel| &cel.expression);
            let compiled = self.allocator.selectors.get(expression);
            let program = compiled
                .as_ref()
                .as_ref()
                .map_err(|why| format!("{}: selector #{number}: CEL compile error: {why}", by()))?;
            let is_true = is_true(program, driver, candidate.device)
                .map_err(|why| format!("{}: selector #{number}: CEL runtime error: {why}", by()))?;
            if !is_true {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
