import type { Catalog } from '../catalog/catalog.ts';
import type { Group } from '../upstreams/group.ts';
import type { HeldCalls } from './crossing/held-calls.ts';
import type { RequestStates } from './modern/request-state.ts';
import type { CallRecorder, RunOfCall } from './records.ts';

/** What all calls share. */
export interface CallDesk {
  recorder: CallRecorder;
  held: HeldCalls;
  states: RequestStates;
  /** How long a client may take to answer what a server asks. */
  inputWaitMs: number;
}

/** Where a call goes, and as what its client knows that. */
export interface CallContext {
  group: Group;
  /** The name under which the client asked for it; URIs in the answer are under the same one. */
  place: string;
  /** What there was when the call was made: it tells whose the URIs in the answer are. */
  catalog: Catalog | undefined;
  /** The project that the request is limited to. */
  project: string | undefined;
  /** The run of an agent that it belongs to. */
  run?: RunOfCall | undefined;
}
