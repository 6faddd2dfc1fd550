r"""A session's part in distributed transactions: its current branch, and suspended ones.

    select -> start -> work -> end                      the work belongs to the branch
                          \-> end with suspend ... start with resume -> work -> end

Outside start and end the work belongs to the session and takes effect at once. A session that
closes without `end` makes its branches fail.
"""

from __future__ import annotations

from harebell.model.xa.branch import Asker, Branch, BranchError
from harebell.model.xa.branches import Branches, unknown
from harebell.model.xa.states import ASSOCIATED, Call, Fault, Status
from harebell.model.xa.xid import Xid


class Association:
    """The branches of a session.

    Args:
        branches: the branches of the broker.
        vhost: the vhost of the session.
        user: the user of the session; its tags are read at each call.

    Attributes:
        selected: whether the session has selected distributed transactions.
        branch: the branch that it works on now.
    """

    def __init__(self, branches: Branches, vhost: str, user: Asker) -> None:
        self.selected = False
        self.branch: Branch | None = None
        self._suspended: dict[Xid, Branch] = {}
        self._branches = branches
        self._vhost = vhost
        self._user = user

    def select(self) -> None:
        """Select distributed transactions for the session."""
        self.selected = True

    def start(self, xid: Xid, *, join: bool = False, resume: bool = False) -> Status:
        """Work on a branch from now on, unless the status is not OK.

        Args:
            xid: the branch; a new one without the flags.
            join: join a known branch of other sessions.
            resume: resume a branch that this session has suspended.

        Raises:
            BranchError: the branch is not in a state for that.
        """
        self._check_selected("start")
        if join and resume:
            raise BranchError(Fault.INVALID, f"xid {xid}: join and resume exclude each other")
        branch = self._branches.find(self._vhost, xid)
        if self.branch is not None and (join or resume or branch is None):
            raise BranchError(
                Fault.ILLEGAL_STATE,
                f"xid {xid} cannot be started: the session works on xid {self.branch.xid}",
            )
        if resume:
            return self._resume(xid, branch)
        if join:
            return self._join(xid, branch)
        self._enter(self._branches.begin(self._vhost, xid, self._user))
        return Status.OK

    def _enter(self, branch: Branch) -> None:
        branch.sessions += 1
        self.branch = branch

    def _join(self, xid: Xid, branch: Branch | None) -> Status:
        if branch is None or not branch.open_to(self._user):
            raise unknown(xid)
        if xid in self._suspended:
            raise BranchError(Fault.ILLEGAL_STATE, f"xid {xid} is suspended here: resume it")
        status = self._branches.apply(branch, Call.JOIN).status
        if status is Status.OK:
            self._enter(branch)
        return status

    def _resume(self, xid: Xid, found: Branch | None) -> Status:
        branch = self._suspended.get(xid)
        if branch is None:
            if found is None or not found.open_to(self._user):
                raise unknown(xid)
            raise BranchError(
                Fault.ILLEGAL_STATE, f"xid {xid} cannot be resumed: it is not suspended here"
            )
        status = self._branches.apply(branch, Call.RESUME).status
        # After the call: if the table refuses it, the branch stays suspended here.
        del self._suspended[xid]
        if status is Status.OK:
            self.branch = branch
        else:
            # It was rolled back meanwhile, and no session resumes it.
            self._leave(branch, Call.END, Call.LAST_END)
        return status

    def end(self, xid: Xid, *, fail: bool = False, suspend: bool = False) -> Status:
        """Stop working on the branch.

        Args:
            xid: the branch.
            fail: the work has failed.
            suspend: the session resumes it later.

        Raises:
            BranchError: the session does not work on it.
        """
        self._check_selected("end")
        if fail and suspend:
            raise BranchError(Fault.INVALID, f"xid {xid}: suspend and fail exclude each other")
        branch = self.branch
        if branch is not None and branch.xid == xid:
            self.branch = None
        elif suspend or xid not in self._suspended:
            raise BranchError(Fault.ILLEGAL_STATE, f"the session is not associated with xid {xid}")
        else:
            branch = self._suspended.pop(xid)
        if fail:
            return self._leave(branch, Call.FAIL, Call.LAST_FAIL)
        if suspend:
            status = self._branches.apply(branch, Call.SUSPEND).status
            # Otherwise it was rolled back meanwhile: nothing is left to resume, so it ends here.
            if status is Status.OK:
                self._suspended[xid] = branch
                return status
        return self._leave(branch, Call.END, Call.LAST_END)

    def close(self) -> None:
        """Close the session; branches without `end` fail."""
        branches = [*self._suspended.values()]
        if self.branch is not None:
            branches.append(self.branch)
        self.branch = None
        self._suspended.clear()
        for branch in branches:
            # A prepared branch survives its sessions.
            if branch.state in ASSOCIATED:
                self._leave(branch, Call.LOST, Call.LAST_LOST)

    def _leave(self, branch: Branch, call: Call, last: Call) -> Status:
        branch.sessions -= 1
        return self._branches.apply(branch, call if branch.sessions else last).status

    def _check_selected(self, what: str) -> None:
        if not self.selected:
            raise BranchError(
                Fault.INVALID,
                f"{what} is not possible: the session has not selected distributed transactions",
            )
