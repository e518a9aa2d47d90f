"""The lane of large requests: decoded in a thread, served in slices, fairly by principal and address.

A request of a million elements takes seconds, and the event loop also carries consensus. So a large frame
waits here until it is scheduled (`work_shares`). The effect ReadFrame decodes it. Its handler runs as a
generator, one slice in each event loop callback. So do handlers of small requests that need more than one
slice. Of each sender one large request is open at a time, and all open ones together are bounded in bytes.
The connection is held meanwhile (`holds`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kraftd.ground.pace import MAX_SLICE_WORK_US
from kraftd.named_tuple import NamedTuple
from kraftd.requests.call import Call
from kraftd.requests.effects import ReadFrame
from kraftd.requests.events import FrameRead
from kraftd.requests.holds import Hold, Holds, Work
from kraftd.requests.outbox import Outbox
from kraftd.requests.work_shares import COST_US_PER_BYTE, Job, Sender, WorkShares
from kraftd.wire.slices import free_in_slices

LARGE_FRAME_BYTES = 16_384  # above it a frame is decoded in a thread
MAX_OPEN_BYTES = 33_554_432  # of frames that are decoded and not yet answered; a larger one is open alone

Guard = Callable[[Call, Exception], None]


class Lane(NamedTuple):
    """What a node supplies: `schedule` asks for the next slice, `read_frame` is its effect."""

    schedule: Callable[[], None]
    now_ms: Callable[[], int]
    read_frame: type[ReadFrame] = ReadFrame


class LargeRequests:
    """Large requests of one node's listeners, and all work that goes on after its first slice.

    `guard` answers for an exception of the work.
    """

    def __init__(self, outbox: Outbox, guard: Guard, holds: Holds, lane: Lane) -> None:
        self.shares = WorkShares()
        self._outbox = outbox
        self._guard = guard
        self._holds = holds
        self._held: dict[Job, Hold] = {}  # the holds of all jobs
        self._schedule, self._now_ms, self._read_frame = lane
        self._waiting: dict[Sender, deque[Job]] = {}  # the next sender first
        self._open: dict[Sender, Job] = {}
        self._open_bytes = 0
        self._reading: Job | None = None
        self._due_ms: int | None = None  # when an allowance lets the next job begin
        self._work: deque[tuple[Job | None, Call | None, Work]] = deque()
        self._served: dict[Call, Job] = {}

    @property
    def busy(self) -> bool:
        """Return whether there is something to do in the next slice."""
        return bool(self._work)

    def deadline_ms(self) -> int | None:
        """When `run_due` has something to do; None for never."""
        return self._due_ms

    def run_due(self) -> None:
        """Open the job whose sender has an allowance again."""
        if self._due_ms is not None and self._due_ms <= self._now_ms():
            self._advance()

    # -- large frames

    def add(self, job: Job) -> None:
        """Decode and serve a large frame after those that are scheduled before it."""
        self._held[job] = self._holds.hold(job.connection_id)
        self._waiting.setdefault(job.sender, deque()).append(job)
        self._advance()

    def frame_read(self, event: FrameRead) -> None:
        """Serve a frame that was decoded."""
        self._reading = None
        job = event.job
        job.under_way += 1
        job.take(job, event.outcome)
        self._work_done(job, None)
        self._advance()

    def serve(self, job: Job, call: Call, work: Work, cost_us: float) -> None:
        """Charge the job for its elements, and do its work, from the next slice on."""
        job.prepaid_us = cost_us
        self.shares.charge(job.sender, job.prepaid_us, self._now_ms())
        self._served[call] = job
        self._later(call, work)

    def _work_done(self, job: Job, call: Call | None) -> None:
        """End a job with the last piece of its work, and resume the frames that waited for it."""
        job.under_way -= 1
        if job.under_way:
            return
        if call is not None:
            del self._served[call]
        del self._open[job.sender]
        self._open_bytes -= job.size_bytes
        self._held.pop(job).end()
        self._advance()

    def abandon(self, connection_id: int) -> None:
        """Drop the waiting frames of a closed connection. An open job continues: dropping it takes long."""
        if connection_id not in self._holds.counts:
            return
        for sender, jobs in list(self._waiting.items()):
            kept = deque(job for job in jobs if job.connection_id != connection_id)
            for job in jobs:
                if job.connection_id == connection_id:
                    self._held.pop(job).end()
            if kept:
                self._waiting[sender] = kept
            else:
                del self._waiting[sender]

    # -- work in slices

    def begin(self, call: Call, work: Work) -> None:
        """Do the first slice of a call's work now, and the others in later callbacks."""
        if call in self._served or self._goes_on(call, work):
            self._later(call, work)

    def free(self, call: Call) -> None:
        """Free the elements of a large request that was answered."""
        if call.message is not None:
            self._later(call, free_in_slices(call.message))

    def run_slice(self) -> None:
        """Do one slice, of the work that has waited longest for one."""
        if not self._work:
            return
        job, call, work = self._work.popleft()
        if call is not None:
            sender = (call.principal, call.host)
            cost_us = float(MAX_SLICE_WORK_US)
            if job is not None:
                sender = job.sender
                paid_us = min(cost_us, job.prepaid_us)
                job.prepaid_us -= paid_us
                cost_us -= paid_us
            self.shares.charge(sender, cost_us, self._now_ms())
            call.throttle_ms = self.shares.wait_ms(sender, self._now_ms())
        if self._goes_on(call, work):
            self._work.append((job, call, work))
        elif job is not None:
            self._work_done(job, call)
        if self._work:
            self._schedule()

    def later(self, work: Work) -> None:
        """Do work that belongs to no call, from the next slice on."""
        self._later(None, work)

    def _later(self, call: Call | None, work: Work) -> None:
        job = None if call is None else self._served.get(call)
        if job is not None:
            job.under_way += 1
        self._work.append((job, call, work))
        self._schedule()

    def _goes_on(self, call: Call | None, work: Work) -> bool:
        """Do a slice; return whether there is more to do."""
        try:
            next(work)
        except StopIteration:
            return False
        except Exception as error:
            if call is None:
                raise
            self._guard(call, error)
            return False
        return True

    # -- turns

    def _advance(self) -> None:
        """Begin to read the next job: of the senders that have none open, the one that waits longest."""
        self._due_ms = None
        if self._reading is not None:
            return
        now_ms = self._now_ms()
        for sender, jobs in self._waiting.items():
            if sender in self._open:
                continue
            job = jobs[0]
            wait_ms = self.shares.wait_ms(sender, now_ms) if job.held else 0
            if wait_ms:
                due_ms = now_ms + wait_ms
                self._due_ms = due_ms if self._due_ms is None else min(self._due_ms, due_ms)
                continue
            if self._open_bytes and self._open_bytes + job.size_bytes > MAX_OPEN_BYTES:
                break  # no smaller one overtakes it for ever
            self._read(job, now_ms)
            return

    def _read(self, job: Job, now_ms: int) -> None:
        sender = job.sender
        jobs = self._waiting.pop(sender)
        jobs.popleft()
        if jobs:
            self._waiting[sender] = jobs  # behind the others
        self._open[sender] = self._reading = job
        self._open_bytes += job.size_bytes
        self.shares.charge(sender, job.size_bytes * COST_US_PER_BYTE, now_ms)
        self._outbox.emit(self._read_frame(job))

    def __repr__(self) -> str:
        waiting = sum(map(len, self._waiting.values()))
        return f"<LargeRequests {len(self._open)} open, {waiting} waiting, {len(self._work)} in slices>"
