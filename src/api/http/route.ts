import type { z } from 'zod';
import type { Sender } from '../../identity/principal.ts';
import type { Action } from '../../identity/roles.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import type { Services } from '../services.ts';
import type { StreamReply, Subscribe } from './event-stream.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** By status; null means a response without a body. */
export type Answers = Record<number, z.ZodType | null>;

/** 'project' and 'name' for '/projects/:project/servers/:name'. */
type ParameterOf<Path extends string> = Path extends `${infer Head}/${infer Tail}`
  ? ParameterOf<Head> | ParameterOf<Tail>
  : Path extends `:${infer Name}`
    ? Name
    : never;

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** Everything in it is validated. */
interface Context<Parameter extends string, Query, Body> {
  services: Services;
  sender: Sender;
  /** Throws unless the sender may do what the route needs in the project, or without one in all projects. */
  authorize(project: NamedProject | undefined, subject?: string): void;
  /** Replies with a stream that ends when the sender may no longer have it. */
  stream(maxUnreadBytes: number, subscribe: Subscribe): StreamReply;
  params: Record<Parameter, string>;
  /** The project that `:project` names, by id or name. */
  project: 'project' extends Parameter ? LiveProject : undefined;
  query: Query;
  body: Body;
  /** The version that `If-Match` requires. */
  ifVersion: number | undefined;
  accept: string | undefined;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
}

interface NamedProject {
  readonly id: string;
  readonly name: string;
}

/** What finds and authorizes what a request names. */
export type Asking = Pick<Context<string, unknown, unknown>, 'services' | 'sender' | 'authorize'>;

/** A body that is already JSON text. */
interface RawReply {
  status: number;
  json: string;
}

export type Reply =
  | { status: number; body: unknown; headers?: Record<string, string> }
  | RawReply
  | StreamReply;

/** One of the declared responses. */
type Declared<Given extends Answers> =
  | {
      [Status in keyof Given & number]: {
        status: Status;
        body: Given[Status] extends z.ZodType ? z.input<Given[Status]> : undefined;
        headers?: Record<string, string>;
      };
    }[keyof Given & number]
  | (RawReply & { status: keyof Given & number })
  | StreamReply;

interface Definition<Path extends string, Query, Schema, Body, Given extends Answers> {
  operationId: string;
  summary: string;
  /** What the sender must be allowed to do: in the project of the path, or without one in all projects. */
  action: Action | 'any';
  /** Set if the body, the query or a row names the project: then the handler calls `authorize`. */
  authorizesItself?: boolean;
  query?: Query;
  body?: Schema;
  /** Parses the body instead of the schema, which then only documents it. */
  read?: (text: string) => Body;
  /** Whether it accepts `If-Match`. */
  isConditional?: boolean;
  /** Whether it responds with an event stream: always, or if the request asks for one. */
  isStream?: boolean | 'on demand';
  /** Whether it can also respond with lines of JSON. */
  isLines?: boolean;
  answers: Given;
  handle(
    context: Context<ParameterOf<Path>, Parsed<Query>, Body>,
  ): Promise<Declared<Given>> | Declared<Given>;
}

/** A route with its handler's types erased. */
export interface Route
  extends Omit<
    Definition<string, z.ZodObject | undefined, z.ZodType | undefined, unknown, Answers>,
    'handle'
  > {
  method: Method;
  /** Below /api/v1, with :parameters. */
  path: string;
  handle(context: Context<string, unknown, unknown>): Promise<Reply> | Reply;
}

/** Infers the types of the handler from the schemas of the request and the responses. */
export function route<
  Path extends string,
  Given extends Answers,
  Query extends z.ZodObject | undefined = undefined,
  Schema extends z.ZodType | undefined = undefined,
  Body = Parsed<Schema>,
>(method: Method, path: Path, definition: Definition<Path, Query, Schema, Body, Given>): Route {
  return { method, path, ...definition } as unknown as Route;
}
