// supergateway as it is without options: it starts a program for each request.
import { callThrough } from './supergateway.mjs';

await callThrough();
