"""What each reason of a condition means, and what to do about it: one table, in words for somebody new. Data only.

In braces: {name} and {namespace} of the render, {operator} (the operator's namespace), and where the render's API key
lies: {secret_namespace}, {secret}, {key}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """`commands` can be pasted; a word in capitals in them is to be filled in."""

    meaning: str
    do: str
    commands: tuple[str, ...] = ()


_NOTHING: Final = "Nothing: it goes on by itself."
_WATCH: Final = "kubectl sumerender wait -n {namespace} {name}"
_DESCRIBE: Final = "kubectl describe sumerender -n {namespace} {name}"
_RETRY: Final = "kubectl sumerender retry -n {namespace} {name}"
_RESUME: Final = "kubectl sumerender resume -n {namespace} {name}"
_REFRESH: Final = "kubectl sumerender refresh -n {namespace} {name}"
_DOWNLOAD: Final = "kubectl sumerender download -n {namespace} {name} --to ."
_LOGS: Final = "kubectl logs -n {operator} -l app.kubernetes.io/name=sume-operator --all-containers --tail=50"
_PODS: Final = "kubectl get pods -n {operator} -l app.kubernetes.io/name=sume-operator"
_VALUES: Final = "helm get values -n {operator} RELEASE --all"
_QUEUE: Final = "kubectl sumerender list -n {namespace} --state Pending"
_MAKE_KEY: Final = "kubectl create secret generic -n {secret_namespace} {secret} --from-literal={key}=YOUR_SUME_API_KEY"
_SET_KEY: Final = (
    "kubectl patch secret -n {secret_namespace} {secret} --type merge "
    '-p \'{{"stringData":{{"{key}":"YOUR_SUME_API_KEY"}}}}\''
)

ADVICE: Final[Mapping[str, Advice]] = {
    # Accepted
    "Accepted": Advice(meaning="The operator has taken the render on.", do=_NOTHING),
    "Pending": Advice(
        meaning="The operator knows the render, and has not looked it up at Sume yet.",
        do="Wait a moment. If it stays so for minutes, see whether the operator's pods run.",
        commands=(_WATCH, _PODS),
    ),
    "CredentialsNotFound": Advice(
        meaning="There is no API key to ask Sume with: the Secret is missing, the operator may not read it, or (where "
        "the render names no Secret) the operator has no key of its own. Sume was not asked.",
        do="Make the Secret that is named; it is picked up within 30 seconds. If it exists, the operator's Role lacks "
        "`get` on secrets in this namespace.",
        commands=(_MAKE_KEY, "kubectl get secret -n {secret_namespace} {secret}"),
    ),
    "CredentialsKeyMissing": Advice(
        meaning="The Secret is there, but has no entry of the name that the render asks for. Sume was not asked.",
        do="Put the API key under that name; it is picked up within 30 seconds.",
        commands=("kubectl describe secret -n {secret_namespace} {secret}", _SET_KEY),
    ),
    "CredentialsInvalid": Advice(
        meaning="What lies in the Secret cannot be an API key: it is empty, or holds blanks, line breaks or other "
        "characters that no key has. Sume was not asked.",
        do="Copy the key anew, in one line; it is picked up within 30 seconds.",
        commands=(_SET_KEY,),
    ),
    "NamespaceNotAllowed": Advice(
        meaning="The render names no Secret, and this namespace may not use the operator's own key.",
        do="Make a Secret with a key of yours, and a new render with spec.credentialsSecretRef; or have the "
        "administrator add the namespace (chart value sume.defaultKeyNamespaces).",
        commands=(
            "kubectl create secret generic -n {namespace} SECRET --from-literal=apiKey=YOUR_SUME_API_KEY",
            _VALUES,
        ),
    ),
    "SubmissionsDisabled": Advice(
        meaning="This operator only follows jobs that exist (spec.jobID); it was told to ask for no new ones.",
        do="Have the administrator allow it (chart value sume.submissionsEnabled); the render then goes on by itself. "
        "Or make the job elsewhere, and follow it.",
        commands=(_VALUES,),
    ),
    # Submitted
    "Created": Advice(meaning="Sume was asked for the job, and made it.", do=_NOTHING),
    "AlreadyExists": Advice(
        meaning="The idempotency key had made a job before, and Sume gave that one again: nothing was paid twice.",
        do="If a new job is wanted, make a render with another spec.request.idempotencyKey.",
        commands=(_RETRY,),
    ),
    "Adopted": Advice(meaning="The job existed before this render, which only follows it.", do=_NOTHING),
    "NotSubmitted": Advice(
        meaning="Sume has not been asked for the job yet, or said no to the API key rather than to the job: there is "
        "certainly none.",
        do="Wait a moment; if condition Synced is False, its reason tells what is in the way.",
        commands=(_DESCRIBE, _PODS),
    ),
    "WaitingForSlot": Advice(
        meaning="Only so many jobs of one API key run at Sume at once, and all places are taken. The message says how "
        "many renders are before this one; a higher spec.priority goes first, then the oldest. It costs nothing yet.",
        do="Wait: it is asked for as soon as a place is free. To have it earlier, give it a higher priority, or "
        "suspend or cancel others. If Sume allows more, raise the chart value sume.maxActiveJobs.",
        commands=(
            _QUEUE,
            'kubectl patch sumerender -n {namespace} {name} --type merge -p \'{{"spec":{{"priority":100}}}}\'',
        ),
    ),
    "Suspended": Advice(
        meaning="spec.suspend is true: nothing is asked of Sume. A job that runs there goes on running.",
        do="Resume it when it shall go on.",
        commands=(_RESUME,),
    ),
    "InsufficientCredits": Advice(
        meaning="The workspace at Sume has no credits left, so Sume makes no job. Nothing was paid.",
        do="Add credits at Sume. The render is tried again by itself every few minutes; refresh it to try now.",
        commands=(_REFRESH,),
    ),
    "SubmissionRejected": Advice(
        meaning="Sume refused the request itself, for good: the model or its arguments are not acceptable. The message "
        "has Sume's words. No job was made, and nothing was paid.",
        do="A request cannot be edited: correct the file that it came from, and make a render of another name.",
        commands=("kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.spec.request}}'", _DESCRIBE),
    ),
    "Submitting": Advice(
        meaning="Sume is being asked for the job at this moment; that can take a minute and a half.",
        do="Wait. If it stays so for minutes, a poller died in the middle: another one asks again with the same key.",
        commands=(_WATCH,),
    ),
    "OutcomeUnknown": Advice(
        meaning="Sume did not tell what became of it: the answer to the request was lost, or it ended with a word that "
        "is not known here. While the render lives it is asked again with the same key, which makes no second job.",
        do="While it has not ended: wait. Once it has ended so (after 24 hours): look up at Sume whether a job with "
        "the idempotency key was made; follow it with a new render that has its spec.jobID, else ask again.",
        commands=(
            "kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.status.submission.idempotencyKey}}'",
            _RETRY,
        ),
    ),
    # Synced
    "Observed": Advice(meaning="Sume answered the last look.", do=_NOTHING),
    "NotObservedYet": Advice(
        meaning="Sume has not been asked about the job yet.", do="Wait a moment.", commands=(_WATCH,)
    ),
    "RateLimited": Advice(
        meaning="Sume limits how often this API key may ask, and all renders of the key wait. The job itself goes on.",
        do="Wait: it is looked at again by itself. If it happens often, lower the chart values sume.readsPerMinute or "
        "sume.submissionsPerMinute, and see what else uses the key.",
        commands=(_WATCH, _VALUES),
    ),
    "Unauthorized": Advice(
        meaning="Sume does not accept the API key (wrong, replaced or revoked), or the key may not see this job. "
        "Nothing is lost: a job that runs goes on, and the render is not failed.",
        do="Put a good key into the Secret. All renders of the key go on by themselves within 90 seconds.",
        commands=(_SET_KEY,),
    ),
    "APIUnavailable": Advice(
        meaning="Sume did not answer, or with an error of its own. The job, if there is one, is not touched by that.",
        do="Wait: it is tried again, later and later, up to every five minutes. If it lasts, see Sume's status page "
        "and whether the operator's pods can reach Sume (NetworkPolicy, proxy).",
        commands=(_LOGS, _REFRESH),
    ),
    "InvalidResponse": Advice(
        meaning="Something answered that does not speak as Sume does: often a proxy or a login page in between.",
        do="Check the address (chart value sume.url) and the proxy. It is tried again by itself.",
        commands=(_LOGS, _VALUES),
    ),
    "JobNotFound": Advice(
        meaning="Sume says that it does not know the job. For a job that was seen before this is borne for an hour or "
        "more; one that was never seen is given up after five looks.",
        do="Check spec.jobID, and that the API key is of the workspace that made the job.",
        commands=("kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.spec.jobID}} {{.status.apiURL}}'",),
    ),
    "WrongEndpoint": Advice(
        meaning="The job lives on another address of Sume's than the one this operator talks to now, so it is not "
        "asked: the answer would be about something else.",
        do="Have the administrator set the address back (chart value sume.url), or run another operator for it.",
        commands=("kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.status.apiURL}}'", _VALUES),
    ),
    # OutputsAvailable
    "Collected": Advice(meaning="The outputs are on record.", do="Download them.", commands=(_DOWNLOAD,)),
    "ResultGone": Advice(
        meaning="The job completed, but Sume no longer keeps its result.",
        do="Ask for it again if it is still needed; that costs credits anew. Next time download soon after the end.",
        commands=(_RETRY,),
    ),
    "NoOutputs": Advice(
        meaning="There is no file: the job made none, or its result named none.",
        do="Look the job up at Sume; ask again if a file was to be expected.",
        commands=(_REFRESH, _RETRY),
    ),
    "NotCollected": Advice(
        meaning="The job has not ended, so there are no outputs yet.", do=_NOTHING, commands=(_WATCH,)
    ),
    # Succeeded and Finished
    "Completed": Advice(meaning="The job has completed.", do="Download what it made.", commands=(_DOWNLOAD,)),
    "Queued": Advice(
        meaning="Sume has the job, and has not begun with it: its own queue is before it.",
        do=_NOTHING,
        commands=(_WATCH,),
    ),
    "Processing": Advice(
        meaning="Sume works on the job, or it has completed and its outputs are being collected.",
        do=_NOTHING,
        commands=(_WATCH,),
    ),
    "Canceling": Advice(
        meaning="Sume is asked to cancel the job. It may refuse when the job runs already; then the job goes on.",
        do="Wait; afterwards the state tells what came of it.",
        commands=(_WATCH, _DESCRIBE),
    ),
    "Retrying": Advice(
        meaning="Sume failed the job, and is asked for another one, as spec.backoffLimit allows.",
        do=_NOTHING,
        commands=(_WATCH,),
    ),
    "JobFailed": Advice(
        meaning="Sume failed the job, for a reason of its own. The message has Sume's words.",
        do="Often another try does: ask again. spec.backoffLimit has that done by itself. Give Sume's support the "
        "request id if it goes on.",
        commands=(_RETRY, "kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.status.error}}'"),
    ),
    "ContentPolicyRejected": Advice(
        meaning="Sume's content policy refused the prompt or an input. The same request will be refused again.",
        do="Change the prompt or the input, and make a render of another name.",
        commands=("kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.spec.request.arguments}}'",),
    ),
    "Canceled": Advice(
        meaning="The job was canceled, here or at Sume, or before it was asked for.",
        do="Ask again if it is wanted after all.",
        commands=(_RETRY,),
    ),
    "DeadlineExceeded": Advice(
        meaning="The job still ran when spec.activeDeadlineSeconds were over, and was given up.",
        do="Ask again with a longer deadline: make a render of another name. If many end so, Sume is slow.",
        commands=(
            "kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.spec.activeDeadlineSeconds}}'",
            _DESCRIBE,
        ),
    ),
    "JobLost": Advice(
        meaning="Sume said again and again that it does not know the job.",
        do="Check spec.jobID, and that the API key is of the workspace that made the job; then make a new render.",
        commands=("kubectl get sumerender -n {namespace} {name} -o jsonpath='{{.spec.jobID}}'",),
    ),
    "Active": Advice(meaning="The render has not ended.", do=_NOTHING, commands=(_WATCH,)),
}

# A render that nothing has touched: what can be told from outside.
NO_CONTROLLER: Final = "NoController"
CONTROLLER_DOWN: Final = "ControllerDown"
NAMESPACE_NOT_WATCHED: Final = "NamespaceNotWatched"
NO_POLLER: Final = "NoPoller"
JUST_MADE: Final = "JustMade"
NOT_TOUCHED: Final = "NotTouched"
UNKNOWN_REASON: Final = "UnknownReason"

_FIND: Final = "kubectl get pods -A -l app.kubernetes.io/name=sume-operator"
UNTOUCHED: Final[Mapping[str, Advice]] = {
    JUST_MADE: Advice(
        meaning="The render was made a moment ago; the operator lives and has not come to it yet.",
        do="Wait a few seconds, and ask again.",
        commands=(_WATCH,),
    ),
    NO_CONTROLLER: Advice(
        meaning="Nothing has touched the render, and no controller has left a sign of life: there is no Lease "
        "sume-operator-controller where it was looked for. The definition of SumeRender alone does nothing.",
        do="See whether an operator is installed at all (perhaps in another namespace than --operator-namespace says, "
        "or without the right to write its Lease); if not, install it.",
        commands=(_FIND, "helm install sume deploy/chart -n sume --create-namespace"),
    ),
    CONTROLLER_DOWN: Advice(
        meaning="Nothing has touched the render: the operator's controller has stopped giving signs of life.",
        do="See what its pod says. Nothing is lost meanwhile: it takes everything up when it is back.",
        commands=(_PODS, _LOGS),
    ),
    NAMESPACE_NOT_WATCHED: Advice(
        meaning="Nothing has touched the render, though the controller lives, and no other render of this namespace "
        "was touched either: most likely the operator does not watch the namespace {namespace}.",
        do="Have the administrator add it (chart value watch.namespaces), or make the render in a namespace that is "
        "watched. If it is watched, see whether the pollers are ready.",
        commands=(_VALUES, "kubectl get sumerenders -A", _PODS),
    ),
    NO_POLLER: Advice(
        meaning="Nothing has touched the render, though the controller lives and other renders of this namespace were "
        "touched: no poller seems to be at work, or Redis does not answer.",
        do="See whether the pollers are ready, and what they say.",
        commands=(_PODS, _LOGS),
    ),
    NOT_TOUCHED: Advice(
        meaning="Nothing has touched the render. Whether the operator lives cannot be seen from here: this account may "
        "not read its Lease sume-operator-controller.",
        do="Say where the operator runs with --operator-namespace, or have an administrator look.",
        commands=(_FIND, "kubectl sumerender why -n {namespace} {name} --operator-namespace NAMESPACE"),
    ),
    UNKNOWN_REASON: Advice(
        meaning="The operator names a reason that this plugin does not know: it is newer than the plugin.",
        do="Read the message; update the plugin.",
        commands=(_DESCRIBE,),
    ),
}
