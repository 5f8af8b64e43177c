import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Backend } from './backend.ts';
import type { Router } from './http/router.ts';
import { sendRefusal } from './http/send.ts';

export interface Api {
  /** Answers a request below /api/. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Answers one that does not get so far. */
  refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: unknown,
    headers?: Record<string, string>,
  ): void;
  /** Ends what would go on for ever. */
  close(): void;
}

/**
 * The REST API. Its parts are loaded with the first request: a gateway that is only called needs none of them.
 * `onFault` is told of what was thrown and is no error that a client may see.
 */
export function createApi(backend: Backend, onFault: (thrown: unknown) => void = () => {}): Api {
  let router: Router | undefined;
  let loading: Promise<Router> | undefined;
  let isClosed = false;

  async function load(): Promise<Router> {
    const { Router } = await import('./http/router.ts');
    router = new Router(backend, onFault);
    if (isClosed) router.close();
    return router;
  }

  return {
    handle(request, response) {
      if (router !== undefined) {
        void router.handle(request, response);
        return;
      }
      loading ??= load();
      loading.then(
        (loaded) => void loaded.handle(request, response),
        (thrown: unknown) => {
          onFault(thrown);
          response.destroy();
        },
      );
    },
    refuse({ method }, response, error, headers) {
      sendRefusal(response, error, method === 'HEAD', headers);
    },
    close() {
      isClosed = true;
      router?.close();
    },
  };
}
