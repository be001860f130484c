/* footprint.h - gives back memory that only starting needed. */
#pragma once

/* Once, when everything has been started. What is needed after all comes back from the page cache, page by page. */
void footprint_trim(void);
